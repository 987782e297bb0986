package admission

import (
	"slices"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/provenance"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
)

// carried is a release that a copy brings: as it is served, and as the disk calls it.
type carried struct {
	served pkgref.Ref
	onDisk string
}

func allCarried() []carried {
	return []carried{
		{python("attrs", "26.1.0"), "26.1"}, // as the wheel's metadata has it
		{python("zope-interface", "5.0"), "5.0.0"},
		{node("left-pad", "1.3.0"), "1.3.0"},
		{module("example.org/mod", "v1.2.0"), "v1.2.0"},
		{pkgref.Ref{Ecosystem: pkgref.Rust, Name: "anyhow", Version: "1.0.0"}, "1.0.0"},
	}
}

// TestACopysRecordNamesWhatWasServed: whatever kind of copy, its record has the version and the
// digest of each release as it was served, so that who looks for these finds the copy.
func TestACopysRecordNamesWhatWasServed(t *testing.T) {
	h := newHouse(t, Limits{})
	h.Unregister("sb1")
	h.policy = parse(t, "packages: { default: allow }")
	must(t, h.Register(h.run()))
	must(t, h.SandboxStarted(t.Context(), "sb1"))
	var disk provenance.Disk
	for _, c := range allCarried() {
		file := archive(c.served)
		if c.served.Ecosystem == pkgref.Python {
			file = wheel(c.served.Name, c.served.Version)
		}
		file.Digest = "sha256:" + hexOf(c.served.String())
		a, err := h.Serve(t.Context(), door.ServeAsk{FileAsk: door.FileAsk{
			Sandbox: "sb1", Package: c.served, File: file, SourceURL: "https://files.example/" + file.Name,
		}, Bytes: door.Bytes{SHA256: hexOf(c.served.String()), Size: 10}})
		must(t, err)
		if !a.Decision.Allowed() {
			t.Fatalf("%s: %+v", c.served, a.Decision)
		}
		disk.Found.Packages = append(disk.Found.Packages, channel.InstalledPackage{
			Ecosystem: string(c.served.Ecosystem), Name: c.served.Name, Version: c.onDisk, Path: "/x/" + c.served.Name,
		})
	}
	disk.Found.Packages = append(disk.Found.Packages, on("python stranger 9.0", "/x/stranger")) // nobody served it
	must(t, installed(h.Installed(t.Context(), "sb1", disk)))

	must(t, h.copyAs(t, "fork", nil))
	must(t, h.SandboxRestored(t.Context(), "fork", Copy{Of: "sb1", Contents: "files"}))
	must(t, h.copyAs(t, "snap", nil))
	must(t, h.SandboxRestored(t.Context(), "snap", Copy{Of: "sb1", Snapshot: "snap1", Contents: "files"}))
	lineage, err := h.Lineage(t.Context(), "fork")
	must(t, err)
	run := h.run()
	run.Sandbox, run.Run, run.Ancestors = "second", "run-second", lineage.Ancestors
	must(t, h.RegisterCopy(t.Context(), run, lineage.Facts))
	must(t, h.SandboxRestored(t.Context(), "second", Copy{Of: "fork", Contents: "files"}))
	h.Unregister("second")
	must(t, h.Restore(t.Context(), run)) // the daemon was away
	lineage, err = h.Lineage(t.Context(), "second")
	must(t, err)
	run.Sandbox, run.Run, run.Ancestors = "third", "run-third", lineage.Ancestors
	must(t, h.RegisterCopy(t.Context(), run, lineage.Facts))
	must(t, h.SandboxRestored(t.Context(), "third", Copy{Of: "second", Contents: "files"}))

	restored := h.records(t, audit.Restored)
	if len(restored) != 4 {
		t.Fatalf("%d copies are on record", len(restored))
	}
	for _, r := range restored {
		names, files := strings.Split(r.Detail["came_with"], ", "), strings.Split(r.Detail["came_with_files"], "\n")
		for _, c := range allCarried() {
			if !slices.Contains(names, c.served.String()) || !slices.Contains(files, c.served.String()+" sha256:"+hexOf(c.served.String())) {
				t.Errorf("the copy %s does not name %s and its digest: %q, %q", r.Sandbox, c.served, names, files)
			}
		}
		if len(names) != len(allCarried())+1 || len(files) != len(allCarried()) || !slices.Contains(names, "python stranger 9.0") {
			t.Errorf("the copy %s names %q and %q", r.Sandbox, names, files)
		}
	}
}

// TestAListThatIsTooLong says how much it leaves out, and cuts no word.
func TestAListThatIsTooLong(t *testing.T) {
	for most, want := range map[int]string{100: "aa, bb, cc", 10: "aa, bb, cc", 9: "aa, bb, and 1 more", 2: "aa, and 2 more", 1: "and 3 more"} {
		if got := joinWithin([]string{"aa", "bb", "cc"}, ", ", most); got != want {
			t.Errorf("in %d bytes: %q, want %q", most, got, want)
		}
	}
}
