"""What Metal refuses and C++ does not, found in the tokens and declarations of a text.

In: a `Unit`. Out: `Finding`s in source order. A rule is a pure function of the text; the list is below, and what
a rule cannot decide without types it leaves to clang.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from metaljit.runtime.msl import rules_kernel, rules_scope, rules_vectors, rules_words
from metaljit.runtime.msl.unit import Finding, Unit

RULES: tuple[Callable[[Unit], Iterator[Finding]], ...] = (
    rules_words.forbidden_words,
    rules_words.literals,
    rules_words.later_words,
    rules_words.lambdas,
    rules_words.words_as_names,
    rules_words.declared_names,
    rules_words.main_function,
    rules_words.late_names,
    rules_words.late_atomics,
    rules_words.late_attributes,
    rules_words.headers,
    rules_scope.program_scope,
    rules_scope.constants,
    rules_scope.function_constants,
    rules_scope.sizes,
    rules_scope.variables_with_classes,
    rules_scope.locals_and_members,
    rules_scope.address_spaces,
    rules_scope.bare_pointers,
    rules_vectors.component_addresses,
    rules_vectors.component_references,
    rules_vectors.long_lists,
    rules_scope.atomic_memory,
    rules_kernel.kernel_functions,
    rules_kernel.argument_indices,
    rules_kernel.argument_types,
    rules_kernel.input_consistency,
    rules_kernel.thread_limits,
)


def findings(unit: Unit) -> list[Finding]:
    """All findings, by place; of several about one word the first rule's."""
    found: dict[int, Finding] = {}
    for rule in RULES:
        for finding in rule(unit):
            found.setdefault(finding.at, finding)
    return [found[at] for at in sorted(found)]
