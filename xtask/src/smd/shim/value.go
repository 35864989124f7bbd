package value

import "sigs.k8s.io/structured-merge-diff/v6/internal/windlass"

// WindlassEncode makes a value ready for a request. A value that is not there is null.
func WindlassEncode(v Value) any {
	if v == nil {
		return nil
	}
	return windlass.Encode(v.Unstructured())
}

// CompareUsing compares two values.
func CompareUsing(_ Allocator, lhs, rhs Value) int {
	return windlass.Ask("value_order", windlass.Object{
		"left":  WindlassEncode(lhs),
		"right": WindlassEncode(rhs),
	}).Number()
}

// EqualsUsing reports whether two values are equal.
func EqualsUsing(a Allocator, lhs, rhs Value) bool {
	return CompareUsing(a, lhs, rhs) == 0
}
