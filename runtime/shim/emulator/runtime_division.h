// Integer division on x86-64: where the processor refuses a division, the instruction is given a result and left behind.
//
// Metal leaves the quotient by zero unspecified and stops for nothing; here it is 0, the remainder the dividend, as on
// arm64. INT_MIN / -1 is INT_MIN, its remainder 0.

#pragma once

#include "runtime_state.h"

#ifdef __x86_64__

namespace __emu {

struct operand {
    u64 value;     // the divisor, 64 bits of it
    const u8* end; // of the instruction
};

// The operand that the byte ModRM at `code` tells, in a register or in memory.
inline operand read_operand(void* context, const u8* code, u8 rex) {
    u32 mode = *code >> 6, base = *code & 7;
    ++code;
    if (mode == 3) return {register_of(context, base | (rex & 1) << 3), code};
    u64 address = 0;
    u32 displacement = mode == 1 ? 1 : mode == 2 ? 4 : 0;
    bool from_pc = mode == 0 && base == 5, has_base = !from_pc;
    if (base == 4) {
        u32 scale = *code >> 6, index = (*code >> 3 & 7) | (rex & 2) << 2;
        base = *code++ & 7;
        has_base = !(mode == 0 && base == 5);
        if (!has_base) displacement = 4;
        if (index != 4) address = register_of(context, index) << scale;
    }
    if (from_pc) displacement = 4;
    if (has_base) address += register_of(context, base | (rex & 1) << 3);
    if (displacement == 1) address += i64(*(const signed char*)code);
    if (displacement == 4) {
        int far;
        memcpy(&far, code, 4);
        address += i64(far);
    }
    code += displacement;
    if (from_pc) address += (u64)code;
    u64 value;
    memcpy(&value, (const void*)address, 8);
    return {value, code};
}

inline void set_register(u64& r, u64 value, u32 bits) {
    if (bits == 64) r = value;
    else if (bits == 32) r = u32(value);  // clears the upper half, as the processor does
    else r = (r & ~0xfffful) | (value & 0xffff);
}

enum class division { none, by_zero, overflow };

// `none` if the instruction is no division. What a compiler makes of C's division has the sign, or zero, in the upper
// half of the dividend: so only the lower one is looked at.
inline division skip_division(void* context) {
    u64& pc = pc_of(context);
    const u8* code = (const u8*)pc;
    u32 bits = 32;
    if (*code == 0x66) bits = 16, ++code;
    u8 rex = (*code & 0xf0) == 0x40 ? *code++ : 0;
    if (rex & 8) bits = 64;
    u8 opcode = *code++, operation = *code >> 3 & 7;
    if ((opcode != 0xf6 && opcode != 0xf7) || (operation != 6 && operation != 7)) return division::none;
    operand divisor = read_operand(context, code, rex);
    u64 &a = register_of(context, 0), &d = register_of(context, 2);
    division what = division::by_zero;
    if (opcode == 0xf6) {  // quotient in al, remainder in ah
        a = (a & ~0xfffful) | (a & 0xff) << 8;
    } else {
        u64 mask = bits == 64 ? ~0ul : (1ul << bits) - 1;
        bool is_zero = !(divisor.value & mask);
        u64 dividend = a & mask;
        set_register(a, is_zero ? 0 : dividend, bits);
        set_register(d, is_zero ? dividend : 0, bits);
        if (!is_zero) what = division::overflow;
    }
    pc = (u64)divisor.end;
    return what;
}

}  // namespace __emu

#endif
