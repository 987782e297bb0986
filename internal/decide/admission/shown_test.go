package admission

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

func shows(version, body string) door.Showing {
	return door.Showing{Sandbox: "sb1", Package: python("rich", version), Kind: door.ShownMetadata, File: "rich-" + version + ".metadata", SourceURL: "https://files.example/rich", SHA256: hexOf(body), Size: 7}
}

// TestWhatIsShownIsRecordedOnce for each release, kind and digest of a run, and once
// more neither after a restart nor by many at once.
func TestWhatIsShownIsRecordedOnce(t *testing.T) {
	h := newHouse(t, Limits{})
	gateway, _ := serve(t, h.Controller) // as the gateway has it
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			if err := gateway.Show(t.Context(), shows("1.0", "a")); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	other := shows("1.0", "a")
	other.Kind = door.ShownRelayed
	tile := door.Showing{Sandbox: "sb1", Package: pkgref.Ref{Ecosystem: pkgref.Go}, Kind: door.ShownRelayed, File: "tile/8/0/000", SHA256: hexOf("t"), Size: 32}
	for range 2 {
		for _, s := range []door.Showing{shows("1.0", "a"), shows("1.0", "b"), shows("2.0", "a"), other, tile} {
			must(t, gateway.Show(t.Context(), s))
		}
		_, err := h.Index(t.Context(), indexOf("numpy", "d1", wheel("numpy", "1.0")))
		must(t, err)
		_, err = h.Index(t.Context(), indexOf("numpy", "d2", wheel("numpy", "1.0"))) // another page
		must(t, err)
		_, err = h.Index(t.Context(), indexOf("numpy", "d3", wheel("numpy", "1.0"), wheel("numpy", "2.0"))) // of which something is withheld
		must(t, err)
		again := New(h.config)
		must(t, again.Restore(t.Context(), h.run()))
		h.Controller = again
	}
	got := h.records(t, audit.Shown)
	kinds := map[string]int{}
	for _, r := range got {
		kinds[r.Detail["kind"]]++
		if r.Run != "run1" || r.Policy != h.policy.Digest() || r.Kind != audit.KindPackage || r.SHA256 == "" && r.Detail["index_digest"] == "" {
			t.Errorf("%+v", r)
		}
	}
	if len(got) != 7 || kinds[door.ShownMetadata] != 3 || kinds[door.ShownRelayed] != 2 || kinds[door.ShownIndex] != 2 || len(h.records(t, audit.Withheld)) != 1 {
		t.Errorf("%d records, %v: %+v", len(got), kinds, got)
	}
	if r := got[0]; r.Package != "rich" || r.InstalledVersion != "1.0" || r.File != "rich-1.0.metadata" || r.Size != 7 {
		t.Errorf("%+v", r)
	}
	sum, err := h.Summary(t.Context(), "run1")
	must(t, err)
	if len(sum.Served)+len(sum.Installed) != 0 || len(sum.Withheld) != 1 || len(sum.Refused) != 1 { // both are of the withheld page
		t.Errorf("the summary: %+v", sum)
	}
	if why, err := h.Refusals(t.Context(), "sb1", "", 0); err != nil || len(why) != 1 { // of the page of which something is withheld
		t.Errorf("why: %+v, %v", why, err)
	}
}

// TestNothingIsShownThatCannotBeRecorded: neither a page nor metadata, and what failed
// once is tried again.
func TestNothingIsShownThatCannotBeRecorded(t *testing.T) {
	h := newHouse(t, Limits{})
	log := &brokenLog{Log: h.log, broken: true}
	h.config.Log = log
	h.Controller = New(h.config)
	must(t, h.Register(h.run()))
	for range 2 {
		if err := h.Show(t.Context(), shows("1.0", "a")); !errors.Is(err, errFull) {
			t.Errorf("metadata: %v", err)
		}
		if a, err := h.Index(t.Context(), indexOf("numpy", "d1", wheel("numpy", "1.0"))); !errors.Is(err, errFull) || a.Epoch != "" {
			t.Errorf("a page: %+v, %v", a, err)
		}
	}
	log.broken = false
	must(t, h.Show(t.Context(), shows("1.0", "a")))
	if n := len(h.records(t, audit.Shown)); n != 1 {
		t.Errorf("%d records", n)
	}
	for name, bad := range map[string]door.Showing{
		"no kind":        {Sandbox: "sb1", File: "f", SHA256: hexOf("a")},
		"an index":       {Sandbox: "sb1", Kind: door.ShownIndex, File: "f", SHA256: hexOf("a")},
		"no digest":      {Sandbox: "sb1", Kind: door.ShownMetadata, File: "f"},
		"no name":        {Sandbox: "sb1", Kind: door.ShownMetadata, SHA256: hexOf("a")},
		"no such name":   {Sandbox: "sb1", Kind: door.ShownMetadata, File: "f", SHA256: hexOf("a"), Package: python("Not_Canonical", "1.0")},
		"of nobody here": {Sandbox: "sb9", Kind: door.ShownMetadata, File: "f", SHA256: hexOf("a")},
	} {
		if err := h.Show(t.Context(), bad); err == nil {
			t.Errorf("%s is shown", name)
		}
	}
}

var errFull = errors.New("the disk is full")

// brokenLog takes no record while it is broken.
type brokenLog struct {
	audit.Log
	broken bool
}

func (l *brokenLog) Append(ctx context.Context, r audit.Record) (audit.Record, error) {
	if l.broken {
		return r, errFull
	}
	return l.Log.Append(ctx, r)
}

// TestWhatIsShownCountsForTheQuota: a run that asks for page after page is cut, and
// its log is not filled.
func TestWhatIsShownCountsForTheQuota(t *testing.T) {
	h := newHouse(t, Limits{Records: 5})
	var last error
	for i := range 10 {
		_, last = h.Index(t.Context(), indexOf("numpy", fmt.Sprint("d", i), wheel("numpy", "1.0")))
	}
	if n := len(h.records(t, audit.Shown)); !errors.Is(last, fault.ErrForbidden) || n != 5 {
		t.Errorf("%d pages, then %v", n, last)
	}
	if err := h.Show(t.Context(), shows("1.0", "a")); !errors.Is(err, fault.ErrForbidden) {
		t.Errorf("metadata: %v", err)
	}
}
