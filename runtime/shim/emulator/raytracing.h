// `metal_raytracing`: declared, so that texts with it compile; to ask for an intersection is a fault.
#pragma once

#include "matrices.h"
#include "textures.h"

namespace metal::raytracing {

struct instancing {};
struct triangle_data {};
struct world_space_data {};
struct primitive_motion {};
struct instance_motion {};
struct extended_limits {};
struct curve_data {};
struct user_data {};
struct intersection_function_buffer {};
template <uint n> struct max_levels {};

enum class intersection_type : uint { none, triangle, bounding_box, curve };
enum class geometry_type : uint { none = 0, triangle = 1, bounding_box = 2, curve = 4, all = 7 };
enum class triangle_cull_mode { none, front, back };
enum class geometry_cull_mode : uint { none = 0, triangle = 1, bounding_box = 2, curve = 4 };
enum class opacity_cull_mode { none, opaque, non_opaque };
enum class forced_opacity { none, opaque, non_opaque };
enum class curve_type { all, round, flat };
enum class curve_basis { all, bspline, catmull_rom, linear, bezier };
__EMU_FN geometry_type operator|(geometry_type a, geometry_type b) { return geometry_type(uint(a) | uint(b)); }
__EMU_FN geometry_cull_mode operator|(geometry_cull_mode a, geometry_cull_mode b) {
    return geometry_cull_mode(uint(a) | uint(b));
}

struct ray {
    float3 origin;
    float min_distance = 0.0f;
    float3 direction;
    float max_distance = INFINITY;
    ray() = default;
    ray(float3 origin, float3 direction, float min_distance = 0.0f, float max_distance = INFINITY)
        : origin(origin), min_distance(min_distance), direction(direction), max_distance(max_distance) {}
};

template <class... Tags> struct acceleration_structure {};
typedef acceleration_structure<> primitive_acceleration_structure;
typedef acceleration_structure<instancing> instance_acceleration_structure;
template <class... T> __EMU_FN bool is_null_primitive_acceleration_structure(const acceleration_structure<T...> &) {
    return true;
}
template <class... T> __EMU_FN bool is_null_instance_acceleration_structure(const acceleration_structure<T...> &) {
    return true;
}
template <class... Tags> struct intersection_function_table {
    uint size() const { return 0; }
};

struct intersection_params {
    void set_triangle_front_facing_winding(uint) {}
    void set_triangle_cull_mode(triangle_cull_mode) {}
    void set_geometry_cull_mode(geometry_cull_mode) {}
    void set_opacity_cull_mode(opacity_cull_mode) {}
    void force_opacity(forced_opacity) {}
    void assume_geometry_type(geometry_type) {}
    void assume_curve_type(curve_type) {}
    void assume_curve_basis(curve_basis) {}
    void assume_curve_control_point_count(uint) {}
    void assume_identity_transforms(bool) {}
    void accept_any_intersection(bool) {}
};

template <class... Tags> struct intersection_result {
    intersection_type type = intersection_type::none;
    float distance = 0.0f;
    uint primitive_id = 0, geometry_id = 0, instance_id = 0, user_instance_id = 0;
    uint instance_count = 0;
    uint instance_ids[16] = {}, user_instance_ids[16] = {};
    const void *primitive_data = nullptr;
    float2 triangle_barycentric_coord = float2(0.0f);
    bool triangle_front_facing = false;
    float curve_parameter = 0.0f;
    float4x3 world_to_object_transform = float4x3(0.0f), object_to_world_transform = float4x3(0.0f);
};

template <class... Tags> struct intersector : intersection_params {
    typedef intersection_result<Tags...> result_type;
    template <class... A> __EMU_MEMBER result_type intersect(const ray &, A...) const {
        return __emu::unsupported<result_type>("the intersection with a ray");
    }
};

template <class... Tags> struct intersection_query {
    intersection_query() = default;
    template <class... A> intersection_query(const ray &, A...) {}
    template <class... A> void reset(const ray &, A...) {}
    __EMU_MEMBER bool next() { return __emu::unsupported<bool>("the intersection with a ray"); }
    void abort() {}
    void commit_triangle_intersection() {}
    void commit_curve_intersection() {}
    void commit_bounding_box_intersection(float) {}

#define __EMU_ASK(T, name)                                                                                             \
    __EMU_MEMBER T name() const { return __emu::unsupported<T>("the intersection with a ray"); }
#define __EMU_ASK_BOTH(T, name)                                                                                        \
    __EMU_ASK(T, get_candidate_##name)                                                                                 \
    __EMU_ASK(T, get_committed_##name)
    __EMU_ASK_BOTH(intersection_type, intersection_type)
    __EMU_ASK_BOTH(uint, primitive_id)
    __EMU_ASK_BOTH(uint, geometry_id)
    __EMU_ASK_BOTH(uint, instance_id)
    __EMU_ASK_BOTH(uint, user_instance_id)
    __EMU_ASK_BOTH(uint, instance_count)
    __EMU_ASK_BOTH(const void *, primitive_data)
    __EMU_ASK_BOTH(float3, ray_origin)
    __EMU_ASK_BOTH(float3, ray_direction)
    __EMU_ASK_BOTH(float2, triangle_barycentric_coord)
    __EMU_ASK_BOTH(float, curve_parameter)
    __EMU_ASK_BOTH(float4x3, object_to_world_transform)
    __EMU_ASK_BOTH(float4x3, world_to_object_transform)
    __EMU_ASK(float, get_candidate_triangle_distance)
    __EMU_ASK(float, get_candidate_curve_distance)
    __EMU_ASK(float, get_committed_distance)
    __EMU_ASK(float3, get_world_space_ray_origin)
    __EMU_ASK(float3, get_world_space_ray_direction)
    __EMU_ASK(float, get_ray_min_distance)
    __EMU_ASK(bool, is_candidate_non_opaque_bounding_box)
    __EMU_ASK(bool, is_candidate_triangle_front_facing)
    __EMU_ASK(bool, is_committed_triangle_front_facing)
#undef __EMU_ASK
#undef __EMU_ASK_BOTH
};

}  // namespace metal::raytracing

namespace metal {

template <class F> struct visible_function_table;
template <class R, class... P> struct visible_function_table<R(P...)> {
    typedef R function(P...);
    uint size() const { return 0; }
    __EMU_MEMBER function *operator[](uint) const { return __emu::unsupported<function *>("a table of functions"); }
};
template <class T> __EMU_FN bool is_null_visible_function_table(const visible_function_table<T> &) { return true; }

}  // namespace metal
