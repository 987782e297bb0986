package config

import (
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
}

func (o Overcommit) check() error {
	for key, factor := range map[string]float64{"memory": o.Memory, "cpu": o.CPU} {
		if factor < 0 || math.IsNaN(factor) || math.IsInf(factor, 0) || factor > 1e6 {
			return fmt.Errorf("overcommit.%s is %v; it must be a number above 0, such as 2 for twice what the host has", key, factor)
		}
	}
	return nil
}
