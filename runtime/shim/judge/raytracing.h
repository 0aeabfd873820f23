// Ray tracing and tables of functions.

#pragma once

namespace metal {
namespace raytracing {

struct instancing {};
struct triangle_data {};
struct world_space_data {};
struct primitive_motion {};
struct instance_motion {};
struct extended_limits {};
struct curve_data {};
struct user_data {};
struct intersection_function_buffer {};
template <uint N>
struct max_levels {};

enum class intersection_type : uint { none, triangle, bounding_box, curve };
enum class geometry_type : uint { none = 0, triangle = 1, bounding_box = 2, curve = 4, all = 7 };
enum class triangle_cull_mode { none, front, back };
enum class geometry_cull_mode : uint { none = 0, triangle = 1, bounding_box = 2, curve = 4 };
enum class opacity_cull_mode { none, opaque, non_opaque };
enum class forced_opacity { none, opaque, non_opaque };
enum class curve_type { all, round, flat };
enum class curve_basis { all, bspline, catmull_rom, linear, bezier };
constexpr geometry_type operator|(geometry_type, geometry_type);
constexpr geometry_cull_mode operator|(geometry_cull_mode, geometry_cull_mode);

struct ray {
    ray() = default;
    ray(float3, float3, float = 0, float = 0);
    float3 origin;
    float min_distance;
    float3 direction;
    float max_distance;
};

template <typename... Tags>
struct acceleration_structure {};
typedef acceleration_structure<> primitive_acceleration_structure;
typedef acceleration_structure<instancing> instance_acceleration_structure;
template <typename T>
bool is_null_primitive_acceleration_structure(T);
template <typename T>
bool is_null_instance_acceleration_structure(T);
template <typename... Tags>
struct intersection_function_table {
    uint size() const;
};

struct intersection_params {
    template <typename A> void set_triangle_front_facing_winding(A);
    void set_triangle_cull_mode(triangle_cull_mode);
    void set_geometry_cull_mode(geometry_cull_mode);
    void set_opacity_cull_mode(opacity_cull_mode);
    void force_opacity(forced_opacity);
    void assume_geometry_type(geometry_type);
    void assume_curve_type(curve_type);
    void assume_curve_basis(curve_basis);
    void assume_curve_control_point_count(uint);
    void assume_identity_transforms(bool);
    void accept_any_intersection(bool);
};

template <typename... Tags>
struct intersection_result {
    intersection_type type;
    float distance;
    uint primitive_id, geometry_id, instance_id, user_instance_id, instance_count;
    uint instance_ids[16], user_instance_ids[16];
    const __judge_device void* primitive_data;
    float2 triangle_barycentric_coord;
    bool triangle_front_facing;
    float curve_parameter;
    float4x3 world_to_object_transform, object_to_world_transform;
};

template <typename... Tags>
struct intersector : intersection_params {
    typedef intersection_result<Tags...> result_type;
    template <typename... A>
    result_type intersect(ray, A...) const;
};

template <typename... Tags>
struct intersection_query {
    intersection_query() = default;
    template <typename... A>
    intersection_query(ray, A...);
    template <typename... A>
    void reset(ray, A...);
    bool next();
    void abort();
    void commit_triangle_intersection();
    void commit_curve_intersection();
    void commit_bounding_box_intersection(float);
#define __judge_ask(T, name) T get_candidate_##name() const; T get_committed_##name() const;
    __judge_ask(intersection_type, intersection_type) __judge_ask(uint, primitive_id) __judge_ask(uint, geometry_id)
    __judge_ask(uint, instance_id) __judge_ask(uint, user_instance_id) __judge_ask(uint, instance_count)
    __judge_ask(const __judge_device void*, primitive_data) __judge_ask(float3, ray_origin)
    __judge_ask(float3, ray_direction) __judge_ask(float2, triangle_barycentric_coord)
    __judge_ask(float, curve_parameter) __judge_ask(float4x3, object_to_world_transform)
    __judge_ask(float4x3, world_to_object_transform)
    float get_candidate_triangle_distance() const;
    float get_candidate_curve_distance() const;
    float get_committed_distance() const;
    float3 get_world_space_ray_origin() const;
    float3 get_world_space_ray_direction() const;
    float get_ray_min_distance() const;
    bool is_candidate_non_opaque_bounding_box() const;
    bool is_candidate_triangle_front_facing() const;
    bool is_committed_triangle_front_facing() const;
};

}  // namespace raytracing

template <typename F>
struct visible_function_table;
template <typename R, typename... P>
struct visible_function_table<R(P...)> {
    // OpenCL has no pointers to functions.
    struct function {
        R operator()(P...) const;
    };
    uint size() const;
    function operator[](uint) const;
};
template <typename T>
bool is_null_visible_function_table(T);

}  // namespace metal
