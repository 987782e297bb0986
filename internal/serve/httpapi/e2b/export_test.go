package e2b

import (
	"maps"
	"slices"
)

// Patterns are the control plane's routes.
func Patterns() []string { return slices.Sorted(maps.Keys((&Control{}).handlers())) }
