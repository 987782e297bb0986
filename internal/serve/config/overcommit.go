package config

import (
	"cmp"
	"fmt"
	"math"
)

// Overcommit says how much more than the host has the sandboxes may be promised together.
// A sandbox that would be more is refused.
type Overcommit struct {
	// Memory is how many times the host's memory the limits of all sandboxes that run may be, such as 2; absent: any number.
	Memory float64 `yaml:"memory"`
	// CPU is the same of the host's processors; absent: any number.
	CPU float64 `yaml:"cpu"`
	// Owner is the part of each of the two that the sandboxes of one token may be promised together, at most 1; 0.75.
	Owner float64 `yaml:"owner"`
}

// ownerPart is the part of one token that is not set: of turns and of frozen sandboxes it has as much.
const ownerPart = 0.75

// OwnerPart is the part that one token may be promised.
func (o Overcommit) OwnerPart() float64 { return cmp.Or(o.Owner, ownerPart) }

func (o Overcommit) checkKeys() error {
	for key, factor := range map[string]float64{"memory": o.Memory, "cpu": o.CPU} {
		if factor < 0 || math.IsNaN(factor) || math.IsInf(factor, 0) || factor > 1e6 {
			return fmt.Errorf("overcommit.%s is %v; it must be a number above 0, such as 2 for twice what the host has", key, factor)
		}
	}
	if o.Owner < 0 || math.IsNaN(o.Owner) || o.Owner > 1 {
		return fmt.Errorf("overcommit.owner is %v; it must be a number above 0 and at most 1, such as 0.5 for half of what the host may promise", o.Owner)
	}
	return nil
}
