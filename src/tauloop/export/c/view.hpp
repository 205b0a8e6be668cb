#include <stddef.h>
#if defined(__has_include)
#if __has_include(<array>)
#include <array>
#define TAULOOP_HAS_ARRAY
#endif
#if __cplusplus >= 202002L
#if __has_include(<span>)
#include <span>
#define TAULOOP_HAS_SPAN
#endif
#endif
#endif

namespace @NAME@ {

#ifdef TAULOOP_HAS_SPAN
template <class T, size_t N> using view = std::span<T, N>;
#else
/* std::span of C++20 for arrays of fixed size, with the same implicit conversions. */
template <class T, size_t N> class view {
public:
    /* cppcheck-suppress noExplicitConstructor */
    template <size_t M> view(T (&array)[M]) noexcept : first(array)
    {
        static_assert(M == N, "an array of another size");
    }
#ifdef TAULOOP_HAS_ARRAY
    /* cppcheck-suppress noExplicitConstructor */
    template <class U, size_t M> view(std::array<U, M> &array) noexcept : first(array.data())
    {
        static_assert(M == N, "an array of another size");
    }
    /* cppcheck-suppress noExplicitConstructor */
    template <class U, size_t M> view(const std::array<U, M> &array) noexcept : first(array.data())
    {
        static_assert(M == N, "an array of another size");
    }
#endif
    T *data() const noexcept { return first; }
    constexpr size_t size() const noexcept { return N; }
    T &operator[](size_t i) const noexcept { return first[i]; }
    T *begin() const noexcept { return first; }
    T *end() const noexcept { return first + N; }

private:
    T *first;
};
#endif
