package config

import "fmt"

// Pool is how many sandboxes are kept ready for one kind of request over the
// network: those of a template under a named policy. Requests under policies with
// the same limits are served from it, too.
type Pool struct {
	Template string `yaml:"template"` // empty: the default template
	Policy   string `yaml:"policy"`   // empty: the policy named "default"
	// Size is how many there should be at any time.
	Size int `yaml:"size"`
	// Wire is the protocol of who asks: its sandboxes have another user inside.
	// Empty: e2b.
	Wire string `yaml:"wire"`
}

// The protocols that a pool may be for.
const (
	WireE2B = "e2b" // the SDKs
	WireV1  = "v1"  // requests by tokens to /v1, as of `cofferdam create --host`
)

// maxPool bounds one pool: each of its sandboxes takes memory that nobody uses.
const maxPool = 1_000

func checkPools(pools []Pool) error {
	for i, p := range pools {
		if p.Size < 1 || p.Size > maxPool {
			return fmt.Errorf("pool[%d].size is %d; it must be 1 to %d", i, p.Size, maxPool)
		}
		if p.Wire != "" && p.Wire != WireE2B && p.Wire != WireV1 {
			return fmt.Errorf("pool[%d].wire is %.40q; it is %s (which it is when left out) or %s", i, p.Wire, WireE2B, WireV1)
		}
	}
	return nil
}
