package gateway_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream/liar"
)

// TestTimesOfAnIndex: where the door wants them, the times that the index does
// not have come from the log, for the highest releases, and the digest that the
// door is asked by covers them.
func TestTimesOfAnIndex(t *testing.T) {
	b := newWitnessBench(t, nil)
	var files []toyFile
	for i := range 70 {
		version := fmt.Sprintf("v1.%d.0", i)
		files = append(files, toyFile{Version: version})
		b.record("foo@"+version, toyRecord{Position: 3, Size: 20})
	}
	lookup := func(i int) string { return fmt.Sprintf("%s/sumdb/sum.example/lookup/foo@v1.%d.0", indexHost, i) }
	b.registry.Script(lookup(40), liar.Status(404))
	b.list(indexHost, "foo", files...)
	body := b.file(indexHost, toyPackage{Name: "foo", Version: "v1.69.0"})
	b.record("foo@v1.69.0", toyRecord{File: toySum(body), Position: 3, Size: 20})
	if a := b.get("/foo/v1.69.0.pkg"); a.StatusCode != 200 { // now the log's size is known, and lookups at the same time don't dispute it
		t.Fatal(status(a))
	}
	if a := b.get("/foo"); a.StatusCode != 200 {
		t.Fatal(status(a))
	}
	untimed := b.door.LastAsk()
	for _, f := range untimed.Files {
		if !f.Published.IsZero() {
			t.Fatalf("unasked, %s was published %s", f.Name, f.Published)
		}
	}
	b.door.times = true
	clear(b.door.indexes)
	if a := b.get("/foo"); a.StatusCode != 200 {
		t.Fatal(status(a))
	}
	timed := b.door.LastAsk()
	if timed.IndexDigest == untimed.IndexDigest || len(timed.Files) != 70 {
		t.Errorf("%d files under %s", len(timed.Files), timed.IndexDigest)
	}
	for i, f := range timed.Files {
		want := time.Unix(shippedSize, 0)
		if i < 6 || i == 40 {
			want = time.Time{}
		}
		if !f.Published.Equal(want) {
			t.Errorf("%s was published %s, want %s", f.Name, f.Published, want)
		}
	}
	if b.registry.Count(lookup(5)) != 0 || b.registry.Count(lookup(6)) != 1 {
		t.Error("the log was not asked about the 64 highest releases")
	}
	asks, requests := len(b.door.asks), len(b.registry.Requests())
	if a := b.get("/foo"); a.StatusCode != 200 {
		t.Fatal(status(a))
	}
	if len(b.door.asks) != asks+1 || len(b.registry.Requests()) != requests || b.door.LastAsk().IndexDigest != timed.IndexDigest {
		t.Errorf("the second time the door was asked %d times and the upstream %d", len(b.door.asks)-asks, len(b.registry.Requests())-requests)
	}
}
