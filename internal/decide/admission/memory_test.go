package admission

import (
	"errors"
	"fmt"
	"runtime"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// heap is what is in use after a collection, in bytes.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// browse shows a run so many projects with 500 releases each, until it is refused.
func (h *house) browse(tb testing.TB, projects int) (shown int, err error) {
	tb.Helper()
	for i := range projects {
		name := fmt.Sprint("p", i)
		files := make([]door.File, 500)
		for k := range files {
			files[k] = wheel(name, fmt.Sprintf("%d.%d", i+1, k))
		}
		if _, err := h.Index(tb.Context(), indexOf(name, "d", files...)); err != nil {
			return i, err
		}
	}
	return projects, nil
}

// TestARunCannotFillTheMemory by looking at page after page: where nothing hangs on
// what releases require none is remembered, and else so many bytes of them, for one run
// and for all. It gives back at its end what it took.
func TestARunCannotFillTheMemory(t *testing.T) {
	const projects, megabyte = 200, 1 << 20 // 100,000 releases
	for byDefault, most := range map[string]int64{"allow": 0, "hold": megabyte} {
		t.Run(byDefault, func(t *testing.T) {
			h := newHouse(t, Limits{Remembered: megabyte, IndexBytes: megabyte})
			h.Unregister("sb1")
			h.config.Approvals, h.policy = newQueue(), parse(t, "packages: { default: "+byDefault+" }")
			must(t, h.Register(h.run()))
			before := heap()
			shown, err := h.browse(t, projects)
			grown := heap() - before
			if grown > 3*megabyte {
				t.Errorf("%d projects took %d bytes", shown, grown)
			}
			if full := most > 0; full != errors.Is(err, fault.ErrForbidden) || full != (shown < projects) || shown < 10 {
				t.Errorf("%d projects were shown: %v", shown, err)
			}
			if taken := h.remembered.Taken(); taken > most {
				t.Errorf("%d bytes are remembered", taken)
			}
			h.Unregister("sb1")
			if taken := h.remembered.Taken(); taken != 0 {
				t.Errorf("%d bytes are remembered of a sandbox that is gone", taken)
			}
		})
	}
}

// TestRequirementsTakeBytes, not only numbers: few that many releases have in common
// fill a run's memory, too.
func TestRequirementsTakeBytes(t *testing.T) {
	g := newGrove(t, treeDocument, Limits{Remembered: 64 << 10})
	ask := door.IndexAsk{Sandbox: "sb1", Package: node("root", ""), IndexDigest: "d"}
	var versions []string
	for i := range 200 {
		version := fmt.Sprintf("1.%d.0", i)
		versions = append(versions, version)
		ask.Files = append(ask.Files, archive(node("root", version)))
	}
	_, err := g.Index(t.Context(), ask)
	must(t, err)
	var reqs []door.IndexRequirement
	for i := range 50 {
		reqs = append(reqs, door.IndexRequirement{Name: fmt.Sprint("c", i), Specifier: "^1.0.0", Versions: versions})
	}
	if err := g.EdgesOfIndex(t.Context(), "sb1", node("root", ""), "d", reqs); !errors.Is(err, fault.ErrForbidden) {
		t.Errorf("10,000 requirements in 64 KiB: %v", err)
	}
	must(t, g.EdgesOfIndex(t.Context(), "sb1", node("root", ""), "d", reqs[:5])) // positive control
	g.expect(t, true, node("c4", "1.0.0"))
	g.expect(t, false, node("c40", "1.0.0"))
}
