package admission

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/provenance"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

func jq() SystemPackage {
	return SystemPackage{
		Name: "jq", Version: "1.6-2.1", Architecture: "amd64", File: "jq_1.6-2.1_amd64.deb", SHA256: hexOf("jq"), Size: 64_432, URL: "https://mirror.example/jq.deb", Asked: true,
		Brings: []pkgref.Ref{{Ecosystem: pkgref.Python, Name: "jqlib", Version: "1.6"}},
	}
}

// withSystem registers a second sandbox, under a policy that lets the distribution in.
func withSystem(t *testing.T, h *house) {
	t.Helper()
	must(t, h.Register(Run{Sandbox: "sb2", Run: "run2", Policy: parse(t, "packages: { system: allow }\n")}))
}

// TestPackagesOfTheDistributionAreDecidedAndRecorded: nothing of them without the policy's
// word, and nothing without a record that says what it is.
func TestPackagesOfTheDistributionAreDecidedAndRecorded(t *testing.T) {
	h := newHouse(t, Limits{})
	err := h.AdmitSystem(t.Context(), "sb1", "build1", []string{"jq=1.6", "curl"})
	if !errors.Is(err, fault.ErrForbidden) || !strings.Contains(err.Error(), "packages.system is not set") {
		t.Errorf("a policy that says nothing of them: %v", err)
	}
	if err := h.ServeSystem(t.Context(), "sb1", "build1", jq()); !errors.Is(err, fault.ErrForbidden) {
		t.Errorf("one is served that is not allowed: %v", err)
	}
	blocked := h.records(t, audit.Blocked)
	if len(blocked) != 2 || blocked[0].Package != "jq" || blocked[0].InstalledVersion != "1.6" || blocked[0].Ecosystem != "debian" || !strings.Contains(blocked[0].Detail["suggest"], "system: allow") {
		t.Errorf("the refusals on record are %+v", blocked)
	}
	withSystem(t, h)
	must(t, h.AdmitSystem(t.Context(), "sb2", "build1", []string{"jq"}))
	must(t, h.ServeSystem(t.Context(), "sb2", "build1", jq()))
	must(t, h.SystemInstalled(t.Context(), "sb2", "build1", jq()))
	got := h.records(t, audit.Served, audit.Installed)
	if len(got) != 2 || !got[1].GuestClaimed || got[0].GuestClaimed {
		t.Fatalf("on record are %+v", got)
	}
	for _, r := range got {
		if r.Package != "jq" || r.InstalledVersion != "1.6-2.1" || r.SHA256 != hexOf("jq") || r.Detail["build"] != "build1" || r.Detail["architecture"] != "amd64" || r.Rule != "packages.system" {
			t.Errorf("the record is %+v", r)
		}
	}
	nameless := jq()
	nameless.SHA256 = "short"
	if err := h.ServeSystem(t.Context(), "sb2", "build1", nameless); err == nil {
		t.Error("one is served without its digest")
	}
}

// onDisk says that a sandbox's disk has this.
func onDisk(t *testing.T, h *house, found channel.Inventory) {
	t.Helper()
	_, err := h.Installed(t.Context(), "sb2", provenance.Disk{Found: found})
	must(t, err)
}

// TestWhatPackagesOfTheDistributionBring: modules that lie in them are accounted for, also
// after a restart, and others are alarms as before.
func TestWhatPackagesOfTheDistributionBring(t *testing.T) {
	h := newHouse(t, Limits{})
	withSystem(t, h)
	must(t, h.ServeSystem(t.Context(), "sb2", "build1", jq()))
	found := channel.Inventory{Packages: []channel.InstalledPackage{
		{Ecosystem: "python", Name: "jqlib", Version: "1.6", Path: "/usr/lib/python3/dist-packages/jqlib-1.6.egg-info"},
		{Ecosystem: "python", Name: "smuggled", Version: "1.0", Path: "/usr/lib/python3/dist-packages/smuggled-1.0.egg-info"},
	}}
	alarms := func() (names []string) {
		for _, r := range h.records(t, audit.Alarm) {
			names = append(names, r.Package)
		}
		return names
	}
	onDisk(t, h, found)
	if got := alarms(); !slices.Equal(got, []string{"smuggled"}) {
		t.Errorf("alarms are about %q", got)
	}
	h.Unregister("sb2")
	must(t, h.Restore(t.Context(), Run{Sandbox: "sb2", Run: "run2", Policy: parse(t, "packages: { system: allow }\n")}))
	found.Packages[0].Path = "/usr/lib/python3/dist-packages/again/jqlib-1.6.egg-info"
	onDisk(t, h, found)
	if got := alarms(); !slices.Equal(got, []string{"smuggled"}) {
		t.Errorf("after a restart alarms are about %q", got)
	}
}

// TestACopyUnderAnotherPolicy: what one policy let in of the distribution the next one must
// let in, too.
func TestACopyUnderAnotherPolicy(t *testing.T) {
	h := newHouse(t, Limits{})
	withSystem(t, h)
	must(t, h.SandboxStarted(t.Context(), "sb2"))
	must(t, h.ServeSystem(t.Context(), "sb2", "build1", jq()))
	lineage, err := h.Lineage(t.Context(), "sb2")
	must(t, err)
	copyUnder := func(id, text string) error {
		must(t, h.RegisterCopy(t.Context(), Run{Sandbox: id, Run: id, Policy: parse(t, text), Ancestors: lineage.Ancestors}, lineage.Facts))
		return h.RecheckCopy(t.Context(), id)
	}
	if err := copyUnder("sb3", "packages: { system: allow, default: deny }\n"); err != nil {
		t.Errorf("a policy that allows them: %v", err)
	}
	if err := copyUnder("sb4", "packages: { default: allow }\n"); !errors.Is(err, fault.ErrForbidden) || !strings.Contains(err.Error(), "debian jq 1.6-2.1 is in it") {
		t.Errorf("a policy that does not: %v", err)
	}
}
