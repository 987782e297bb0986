package config

import (
	"fmt"
	"time"
)

// Snapshots says how much of the disk copies of sandboxes may take. A snapshot that finds no room is refused.
type Snapshots struct {
	// MaxBytes is for all of them together, images of forks included; 50 GiB.
	MaxBytes Bytes `yaml:"max_bytes"`
	// MaxCount is how many there may be; 500. Of this and of `snapshots.max_bytes` one token has three quarters at most,
	// and one that has no snapshot may have one.
	MaxCount int `yaml:"max_count"`
	// Reserve stays free on the file system of the state directory; 2 GiB.
	Reserve Bytes `yaml:"reserve"`
	// ColdAfter is how long one lies unused before it is compressed; 10m.
	ColdAfter Duration `yaml:"cold_after"`
}

func (s Snapshots) checkKeys() error {
	if s.MaxCount < 0 {
		return fmt.Errorf("snapshots.max_count is %d; it must be a number above 0", s.MaxCount)
	}
	return nil
}

func (s Snapshots) withDefaults() Snapshots {
	if s.MaxBytes == 0 {
		s.MaxBytes = 50 << 30
	}
	if s.MaxCount == 0 {
		s.MaxCount = 500
	}
	if s.Reserve == 0 {
		s.Reserve = 2 << 30
	}
	if s.ColdAfter == 0 {
		s.ColdAfter = Duration(10 * time.Minute)
	}
	return s
}
