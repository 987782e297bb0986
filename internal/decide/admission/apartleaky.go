//go:build leaky

package admission

import "github.com/cofferdam-dev/cofferdam/internal/decide/policy"

// pageShareKey leaks: pages of names that a run may not have are shared with all, so that how soon
// one is refused tells whether another asked for it. It is for test/isolation, which must
// find it.
func pageShareKey(*tenant, policy.Decision) string { return "" }
