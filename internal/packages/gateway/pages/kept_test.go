package pages

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
)

// indexOf is an index as a packument of so many releases gives it.
func indexOf(releases int) *ecosystem.Index {
	ix := &ecosystem.Index{Project: "pack", Tags: map[string]string{"latest": "1.0.0"}, Rows: []ecosystem.Extent{{Offset: 1, Length: 2}}}
	ix.LeftOut = []ecosystem.LeftOut{{Name: "pack-0.tgz", Version: "0", Reason: "a reason"}}
	for i := range releases {
		version := fmt.Sprintf("1.%d.0", i)
		at := ecosystem.Extent{Offset: int64(i) * 1000, Length: 999}
		ix.Files = append(ix.Files, ecosystem.File{
			Name: "pack-" + version + ".tgz", Version: version, Kind: policy.KindPackage, Digest: "sha512:" + strings.Repeat(fmt.Sprintf("%08x", i), 16),
			URL: "https://files.example/pack/-/pack-" + version + ".tgz", Path: "/pack/-/pack-" + version + ".tgz", Size: int64(i), Requires: ">=18",
			Published: time.Unix(int64(i), 5e6).UTC(), FirstSeen: time.Unix(1, 0).UTC(), Manifest: at, Rows: []ecosystem.Extent{at, {Offset: at.Offset, Length: 5}},
		})
	}
	return ix
}

func TestKeptIndex(t *testing.T) {
	want := indexOf(100)
	var written bytes.Buffer
	if err := writeKept(&written, want); err != nil {
		t.Fatal(err)
	}
	got, err := readKept(bytes.NewReader(written.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	compact(want)
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("compact changed (-want +got):\n%s", diff)
	}
	text := written.Bytes()
	for name, bad := range map[string][]byte{
		"empty": nil, "cut": text[:len(text)-5], "a file less": text[:bytes.LastIndexByte(text[:len(text)-1], '\n')+1],
		"a file more": append(bytes.Clone(text), "{}\n"...), "negative": []byte(`{"count":-1}`), "too many": []byte(`{"count":1000000000}`), "no index": []byte("x"),
	} {
		if ix, err := readKept(bytes.NewReader(bad)); err == nil {
			t.Errorf("%s: read as %d files", name, len(ix.Files))
		}
	}
}

func TestKeptRequirements(t *testing.T) {
	want := &requirements{list: []door.Requirement{{Name: "a", Specifier: "^1"}, {Name: "b"}}, files: [][]int32{{0, 2}, {1}}}
	data, err := want.packed()
	if err != nil {
		t.Fatal(err)
	}
	got, err := readRequirements(data, 3)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(requirements{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for name, bad := range map[string][]byte{"empty": nil, "text": []byte("x"), "cut": data[:len(data)-4]} {
		if r, err := readRequirements(bad, 3); err == nil {
			t.Errorf("%s: %+v", name, r)
		}
	}
	if r, err := readRequirements(data, 2); err == nil {
		t.Errorf("of a page with fewer files: %+v", r)
	}
}

// TestSizeOf: the estimate by which pages leave memory is near the truth, and
// an index of 3,000 releases is small.
func TestSizeOf(t *testing.T) {
	const releases = 3000
	var written bytes.Buffer
	if err := writeKept(&written, indexOf(releases)); err != nil {
		t.Fatal(err)
	}
	before := heap()
	ix, err := readKept(bytes.NewReader(written.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	byPath := map[string]int{}
	for i, f := range ix.Files {
		byPath[f.Path] = i
	}
	taken, estimate := heap()-before, sizeOf(ix)
	if estimate < taken*85/100 || estimate > taken*130/100 {
		t.Errorf("an index of %d bytes is taken for %d", taken, estimate)
	}
	if taken > 600*releases {
		t.Errorf("%d bytes per release", taken/releases)
	}
	runtime.KeepAlive(written)
	runtime.KeepAlive(ix)
	runtime.KeepAlive(byPath)
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestTakesGzip(t *testing.T) {
	for value, want := range map[string]bool{
		"": false, "gzip": true, "gzip, deflate, br": true, "deflate": false, "GZip": true, "x-gzip": true, "*": true, "identity": false,
		"gzip;q=0": false, "gzip; q=0.0": false, "gzip;q=0.5": true, "*;q=0": false, "*, gzip;q=0": false, "gzip;q=0, *": false, "deflate, *;q=0.1": true, "gzip;Q=0": false,
	} {
		if got := takesGzip([]string{value}); got != want {
			t.Errorf("%q: %v", value, got)
		}
	}
}
