package config

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"
)

// Freeze says when sandboxes that wait for a person are frozen to disk
// (packages.on_hold: freeze in a policy), and how much of it they may take. A sandbox that finds no room waits unfrozen.
type Freeze struct {
	// After is how long a person has before the sandbox is frozen; 3s.
	After Duration `yaml:"after"`
	// MaxBytes is for all images together; 20 GiB.
	MaxBytes Bytes `yaml:"max_bytes"`
	// MaxCount is how many sandboxes may be frozen at one time; 50. Of this and of `freeze.max_bytes` one token has three
	// quarters at most, and one that has no frozen sandbox may have one.
	MaxCount int `yaml:"max_count"`
	// Reserve stays free on the file system of the state directory; 2 GiB.
	Reserve Bytes `yaml:"reserve"`
}

func (f Freeze) checkKeys() error {
	if f.MaxCount < 0 {
		return fmt.Errorf("freeze.max_count is %d; it must be a number above 0", f.MaxCount)
	}
	return nil
}

func (f Freeze) withDefaults() Freeze {
	if f.After == 0 {
		f.After = Duration(3 * time.Second)
	}
	if f.MaxBytes == 0 {
		f.MaxBytes = 20 << 30
	}
	if f.MaxCount == 0 {
		f.MaxCount = 50
	}
	if f.Reserve == 0 {
		f.Reserve = 2 << 30
	}
	return f
}

// Bytes is a size written as a number of bytes, or with a unit: 512MiB, 20GiB.
type Bytes int64

// UnmarshalYAML parses the text form.
func (b *Bytes) UnmarshalYAML(n *yaml.Node) error {
	digits, unit := n.Value, int64(1)
	for suffix, size := range map[string]int64{"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40} {
		if rest, ok := strings.CutSuffix(n.Value, suffix); ok {
			digits, unit = strings.TrimSpace(rest), size
		}
	}
	v, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || v <= 0 || v > 1<<62/unit {
		return fmt.Errorf("line %d: %q is not a size such as 512MiB or 20GiB", n.Line, n.Value)
	}
	*b = Bytes(v * unit)
	return nil
}
