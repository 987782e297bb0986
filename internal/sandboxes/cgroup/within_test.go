package cgroup

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// standIn is a share of three groups in the place of the kernel's files, by version.
type standIn struct {
	t       *testing.T
	version int
	h       *Hierarchy
	used    map[string]time.Duration
}

func newStandIn(t *testing.T, version int, groups ...string) *standIn {
	t.Helper()
	s := &standIn{t: t, version: version, used: map[string]time.Duration{}}
	s.h = &Hierarchy{places: map[Controller]controllerPlace{CPU: {version: version, parent: t.TempDir()}, cpuacct: {version: version, parent: t.TempDir()}}}
	for _, g := range groups {
		for _, p := range s.h.places {
			dir := filepath.Join(p.parent, g)
			if err := os.MkdirAll(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			for _, d := range []string{dir, filepath.Dir(dir)} {
				if err := os.WriteFile(filepath.Join(d, "cpu.idle"), []byte("1"), 0o600); err != nil { // left by an earlier daemon
					t.Fatal(err)
				}
			}
		}
	}
	return s
}

// use has groups, and the shares above them, use so many processors for a time.
func (s *standIn) use(b *Balance, length time.Duration, cpus map[string]float64) {
	s.t.Helper()
	for range length / balanceEvery {
		time.Sleep(balanceEvery)
		for g, n := range cpus {
			s.used[g] += time.Duration(n * float64(balanceEvery))
			s.used[filepath.Dir(g)] += time.Duration(n * float64(balanceEvery))
		}
		for g, used := range s.used {
			file, text := filepath.Join(s.h.places[CPU].parent, g, "cpu.stat"), "usage_usec "+strconv.FormatInt(used.Microseconds(), 10)+"\n"
			if s.version == 1 {
				file, text = filepath.Join(s.h.places[cpuacct].parent, g, "cpuacct.usage"), strconv.FormatInt(int64(used), 10)
			}
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				s.t.Fatal(err)
			}
		}
		b.lookAtShares()
	}
}

func (s *standIn) low(group string) bool {
	s.t.Helper()
	data, err := os.ReadFile(filepath.Join(s.h.places[CPU].parent, group, "cpu.idle"))
	if err != nil {
		s.t.Fatal(err)
	}
	return strings.TrimSpace(string(data)) == "1"
}

// TestBalanceWithinAShare: of one owner's sandboxes those that compute go behind those that rest, all that compute are equal,
// and another owner's have nothing to do with it.
func TestBalanceWithinAShare(t *testing.T) {
	for _, version := range []int{1, 2} {
		t.Run("version "+strconv.Itoa(version), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStandIn(t, version, "a.share/busy1", "a.share/busy2", "a.share/rests", "b.share/busy")
				b := NewBalance(s.h)
				s.use(b, 5*time.Second, map[string]float64{"a.share/busy1": 0.6, "a.share/busy2": 0.6, "a.share/rests": 0.01, "b.share/busy": 1.2})
				for group, want := range map[string]bool{"a.share/busy1": true, "a.share/busy2": true, "a.share/rests": false, "b.share/busy": false, "a.share": false, "b.share": false} {
					if got := s.low(group); got != want {
						t.Errorf("%s is low: %t", group, got)
					}
				}
				s.use(b, 5*time.Second, map[string]float64{"a.share/busy1": 0.4, "a.share/busy2": 0.4, "a.share/rests": 0.4, "b.share/busy": 1.2})
				for _, group := range []string{"a.share/busy1", "a.share/busy2", "a.share/rests"} {
					if s.low(group) {
						t.Errorf("all compute, and %s is low", group)
					}
				}
				for _, p := range s.h.places {
					if err := os.RemoveAll(filepath.Join(p.parent, "a.share")); err != nil {
						t.Fatal(err)
					}
				}
				delete(s.used, "a.share")
				for _, g := range []string{"a.share/busy1", "a.share/busy2", "a.share/rests"} {
					delete(s.used, g)
				}
				s.use(b, 2*balanceMemory, map[string]float64{"b.share/busy": 1})
				if len(b.within.shares) != 1 || len(b.lowers) != 2 {
					t.Errorf("of what is gone is kept: %v, %v", b.within.shares, b.lowers)
				}
			})
		})
	}
}
