package windlass

// definitionsOf is for schemas that requests name by a number; these requests bring theirs along.
func definitionsOf(int) Object {
	return Object{}
}
