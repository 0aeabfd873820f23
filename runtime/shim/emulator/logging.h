// `metal_logging`: accepted, and says nothing.
#pragma once

#include "scalars.h"

namespace metal {

enum os_log_type { OS_LOG_TYPE_DEBUG, OS_LOG_TYPE_INFO, OS_LOG_TYPE_DEFAULT, OS_LOG_TYPE_ERROR, OS_LOG_TYPE_FAULT };

struct os_log {
    constexpr os_log() = default;
    constexpr os_log(const char *, const char *) {}
    template <class... A> void log_with_type(os_log_type, const char *, const A &...) const {}
    template <class... A> void log(const char *, const A &...) const {}
    template <class... A> void log_debug(const char *, const A &...) const {}
    template <class... A> void log_info(const char *, const A &...) const {}
    template <class... A> void log_error(const char *, const A &...) const {}
    template <class... A> void log_fault(const char *, const A &...) const {}
};
inline constexpr os_log os_log_default;

}  // namespace metal
