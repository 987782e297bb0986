package admission

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/provenance"
	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/records"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
)

// installed drops what a test does not look at.
func installed(_ Accounted, err error) error { return err }

// on is a package of an inventory, "ecosystem name version".
func on(text, path string) channel.InstalledPackage {
	fields := append(strings.Split(text, " "), "")
	return channel.InstalledPackage{Ecosystem: fields[0], Name: fields[1], Version: fields[2], Path: path}
}

func source(text, path string) channel.InstalledPackage {
	p := on(text, path)
	p.Source = true
	return p
}

func from(p channel.InstalledPackage, dir string) channel.InstalledPackage {
	p.From = dir
	return p
}

func listing(packages ...channel.InstalledPackage) channel.Inventory {
	return channel.Inventory{Packages: packages}
}

// recordsOfDisk are the records about a disk, one line each.
func recordsOfDisk(tb testing.TB, g *house) []string {
	tb.Helper()
	var lines []string
	for _, r := range g.records(tb, audit.Installed, audit.Alarm) {
		lines = append(lines, strings.Join(strings.Fields(fmt.Sprint(r.Outcome, " ", r.Package, " ", r.InstalledVersion, " ", r.Detail[provenance.DetailOrigin], " ", r.Detail[records.DetailBundledIn], " ", r.Detail[records.DetailAlarm])), " "))
	}
	slices.Sort(lines)
	return lines
}

func TestWhereAPackageCameFrom(t *testing.T) {
	const site = "/workspace/.venv/lib/python3.12/site-packages/"
	for what, c := range map[string]struct {
		disk provenance.Disk
		want []string // of installed and alarm records
	}{
		"nothing new": {provenance.Disk{
			Template: listing(on("python pip 25.0", "/usr/lib/pip")), Before: listing(on("node left-pad 1.3.0", "/workspace/node_modules/left-pad")),
			Found: listing(on("python pip 25.0", "/usr/lib/pip"), on("node left-pad 1.3.0", "/workspace/node_modules/left-pad")),
		}, nil},
		"a venv's own pip": {provenance.Disk{
			Template: listing(on("python pip 25.0", "/usr/lib/pip")), Found: listing(on("python pip 25.0", site+"pip")),
		}, []string{"installed pip 25.0 template"}},
		"another pip": {provenance.Disk{
			Template: listing(on("python pip 25.0", "/usr/lib/pip")), Found: listing(on("python pip 24.0", site+"pip")),
		}, []string{"alarm pip 24.0 unaccounted true", "installed pip 24.0 unaccounted true"}},
		"installed anew, where it lay before": {provenance.Disk{
			Before: listing(on("python requests 2.31.0", site+"r"), on("python six 1.16.0", site+"six")),
			Found:  listing(on("python requests 2.31.0", site+"r"), on("python six 1.16.0", site+"six")),
		}, []string{"installed requests 2.31.0"}},
		"installed anew, where the template has it": {provenance.Disk{
			Template: listing(on("python requests 2.31.0", "/usr/lib/r")), Found: listing(on("python requests 2.31.0", "/usr/lib/r")),
		}, []string{"installed requests 2.31.0"}},
		"served": {provenance.Disk{Found: listing(on("python Requests 2.31", site+"r"))}, []string{"installed requests 2.31.0"}},
		"served, twice on the disk, once without its metadata": {provenance.Disk{
			Found: listing(on("python requests 2.31.0", "/a"), on("python requests 2.31.0", "/b"), on("python requests", "/c")),
		}, []string{"installed requests 2.31.0"}},
		"another version than was served": {provenance.Disk{
			Found: listing(on("python requests 2.30.0", "/a")),
		}, []string{"alarm requests 2.30.0 unaccounted true", "installed requests 2.30.0 unaccounted true"}},
		"copied from a mount": {provenance.Disk{
			Before: listing(on("python attrs 23.1.0", "/data/attrs")),
			Found:  listing(on("python attrs 23.1.0", "/data/attrs"), on("python attrs 23.1.0", site+"attrs")),
		}, []string{"alarm attrs 23.1.0 unaccounted true", "installed attrs 23.1.0 unaccounted true"}},
		"changed on a mount": {provenance.Disk{
			Before: listing(on("node left-pad 1.3.0", "/workspace/node_modules/left-pad")),
			Found:  listing(on("node left-pad 1.2.0", "/workspace/node_modules/left-pad")),
		}, []string{"alarm left-pad 1.2.0 unaccounted true", "installed left-pad 1.2.0 unaccounted true"}},
		"the mounted project": {provenance.Disk{
			Before: listing(source("python My_App", "/workspace"), source("node @me/ui", "/workspace/ui")),
			Found:  listing(from(on("python my-app 0.1", site+"my_app"), "/workspace"), on("python my-app 0.1", "/home/agent/.cache/uv/x"), on("node @me/ui 1.0.0", "/workspace/node_modules/.pnpm/x")),
		}, []string{"installed @me/ui 1.0.0 local", "installed my-app 0.1 local"}},
		"a project that is written in the run": {provenance.Disk{
			Found: listing(source("python new-app", "/home/agent/new"), from(on("python new-app 0.1", site+"new"), "/home/agent/new"), on("python new-app 0.1", "/home/agent/.cache/uv/x")),
		}, []string{"installed new-app 0.1 local"}},
		"a node project's copy": {provenance.Disk{
			Found: listing(source("node dep 1.0.0", "/tmp/dep"), on("node dep 1.0.0", "/x/node_modules/dep"), on("node dep 1.0.1", "/y/node_modules/dep")),
		}, []string{"alarm dep 1.0.1 unaccounted true", "installed dep 1.0.0 local", "installed dep 1.0.1 unaccounted true"}},
		"a wheel that was built of one": {provenance.Disk{
			Found: listing(source("python new-app", "/home/agent/new"), from(on("python new-app 0.1", site+"new"), "/tmp/out/new_app-0.1-py3-none-any.whl")),
		}, []string{"installed new-app 0.1 local"}},
		"a wheel that nobody built here": {provenance.Disk{
			Found: listing(source("python new-app", "/home/agent/new"), from(on("python evil 0.1", site+"evil"), "/home/agent/new/dist/evil-0.1-py3-none-any.whl")),
		}, []string{"alarm evil 0.1 unaccounted true", "installed evil 0.1 unaccounted true"}},
		"from a project that was moved": {provenance.Disk{
			Found: listing(source("python new-app", "/home/agent/later"), from(on("python new-app 0.1", site+"new"), "/home/agent/new")),
		}, []string{"installed new-app 0.1 local"}},
		"what a client keeps of an earlier version": {provenance.Disk{
			Found: listing(source("python new-app", "/home/agent/new"), from(on("python new-app 0.2", site+"new"), "/home/agent/new"), on("python new-app 0.1", "/home/agent/.cache/uv/archive-v0/x/new_app-0.1.dist-info")),
		}, []string{"installed new-app 0.1 local", "installed new-app 0.2 local"}},
		"an earlier version by hand": {provenance.Disk{
			Found: listing(source("python new-app", "/home/agent/new"), from(on("python new-app 0.2", site+"new"), "/home/agent/new"), on("python new-app 0.1", site+"new_app-0.1.dist-info")),
		}, []string{"alarm new-app 0.1 unaccounted true", "installed new-app 0.1 unaccounted true", "installed new-app 0.2 local"}},
		"what a build leaves in a project, and by hand in its environment": {provenance.Disk{
			Found: listing(source("python new-app", "/home/agent/new"), on("python new-app 0.1", "/home/agent/new/build/new_app-0.1.dist-info"), on("python new-app 0.2", "/home/agent/new/.venv/lib/python3.12/site-packages/new_app-0.2.dist-info")),
		}, []string{"alarm new-app 0.2 unaccounted true", "installed new-app 0.1 local", "installed new-app 0.2 unaccounted true"}},
		"what is kept beside a project, of which nothing is installed": {provenance.Disk{
			Found: listing(source("python new-app", "/home/agent/new"), on("python new-app 0.1", "/home/agent/newer/new_app-0.1.dist-info")),
		}, []string{"alarm new-app 0.1 unaccounted true", "installed new-app 0.1 unaccounted true"}},
		"from a project that only a build names": {provenance.Disk{
			Before: listing(source("python ", "/data/x")),
			Found:  listing(source("python ", "/home/agent/odd"), from(on("python odd 0.1", site+"odd"), "/home/agent/odd"), from(on("python even 0.1", site+"even"), "/home/agent/even"), on("python ", "/x")),
		}, []string{"alarm even 0.1 unaccounted true", "alarm unaccounted true", "installed even 0.1 unaccounted true", "installed odd 0.1 local", "installed unaccounted true"}},
		"from a directory without a project": {provenance.Disk{
			Found: listing(source("python other", "/home/agent/new"), from(on("python new-app 0.1", site+"new"), "/home/agent/new")),
		}, []string{"alarm new-app 0.1 unaccounted true", "installed new-app 0.1 unaccounted true"}},
		"written under a name that the policy lists": {provenance.Disk{
			Found: listing(source("python numpy", "/home/agent/new"), from(on("python numpy 1.26.0", site+"new"), "/home/agent/new")),
		}, []string{"alarm numpy 1.26.0 unaccounted true", "installed numpy 1.26.0 unaccounted true"}},
		"made up": {provenance.Disk{Found: listing(on("python evil 1.0", site+"evil"), on("weird a b", "/x"))}, []string{
			"alarm a b unaccounted true", "alarm evil 1.0 unaccounted true", "installed a b unaccounted true", "installed evil 1.0 unaccounted true",
		}},
		"on a mount that is too large": {provenance.Disk{
			Before: channel.Inventory{Truncated: true}, Mounts: []string{"/data"},
			Found: listing(on("python attrs 23.1.0", "/data/attrs"), on("python six 1.16.0", "/database/six")),
		}, []string{"alarm six 1.16.0 unaccounted true", "installed attrs 23.1.0 uncertain", "installed six 1.16.0 unaccounted true"}},
	} {
		t.Run(what, func(t *testing.T) {
			h := newHouse(t, Limits{})
			_, err := h.Serve(t.Context(), serving("requests", "2.31.0"))
			must(t, err)
			for range 2 {
				must(t, installed(h.Installed(t.Context(), "sb1", c.disk)))
			}
			if diff := cmp.Diff(c.want, recordsOfDisk(t, h)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			h.Unregister("sb1") // nor is it told again after a restart
			must(t, h.Restore(t.Context(), h.run()))
			must(t, installed(h.Installed(t.Context(), "sb1", c.disk)))
			if diff := cmp.Diff(c.want, recordsOfDisk(t, h)); diff != "" {
				t.Errorf("after a restart (-want +got):\n%s", diff)
			}
		})
	}
}

// TestWhatFollows: record, alarm or end, over a restart too.
func TestWhatFollows(t *testing.T) {
	evil := provenance.Disk{Found: listing(on("python made-up 1.0", "/x"))}
	for mode, want := range map[string]struct {
		lines []string
		ends  bool
	}{
		"record": {[]string{"installed made-up 1.0 unaccounted"}, false},
		"alarm":  {[]string{"alarm made-up 1.0 unaccounted true", "installed made-up 1.0 unaccounted true"}, false},
		"end":    {[]string{"alarm made-up 1.0 unaccounted true", "installed made-up 1.0 unaccounted true"}, true},
	} {
		h := newHouse(t, Limits{})
		h.Unregister("sb1")
		h.policy = parse(t, "packages: { unaccounted: "+mode+" }")
		must(t, h.Register(h.run()))
		a, err := h.Installed(t.Context(), "sb1", provenance.Disk{})
		if err != nil || a.End != "" || h.MustEnd("sb1") != "" {
			t.Errorf("%s: an empty disk: %+v, %v", mode, a, err)
		}
		for range 2 {
			a, err = h.Installed(t.Context(), "sb1", evil)
			if err != nil || (a.End != "") != want.ends || want.ends && !strings.Contains(a.End, "made-up") {
				t.Errorf("%s: %+v, %v", mode, a, err)
			}
			h.Unregister("sb1")
			must(t, h.Restore(t.Context(), h.run()))
			if (h.MustEnd("sb1") != "") != want.ends {
				t.Errorf("%s: after a restart: %q", mode, h.MustEnd("sb1"))
			}
		}
		if diff := cmp.Diff(want.lines, recordsOfDisk(t, h)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", mode, diff)
		}
		sum, err := h.Summary(t.Context(), "run1")
		must(t, err)
		if (sum.Ended != "") != want.ends || len(sum.Installed) != 1 || sum.Installed[0].Alarm != (mode != "record") {
			t.Errorf("%s: the summary is %+v", mode, sum)
		}
	}
}

// TestInventoryUnknown: a guest that lists nothing is not taken for one that has
// nothing.
func TestInventoryUnknown(t *testing.T) {
	for _, c := range []struct {
		mode    string
		lives   bool
		outcome audit.Outcome
		ends    bool
	}{
		{"alarm", true, audit.Alarm, false},
		{"alarm", false, audit.Failed, false},
		{"record", true, audit.Failed, false},
		{"end", true, audit.Alarm, true},
		{"end", false, audit.Failed, false},
	} {
		h := newHouse(t, Limits{})
		h.Unregister("sb1")
		h.policy = parse(t, "packages: { unaccounted: "+c.mode+" }")
		must(t, h.Register(h.run()))
		a, err := h.InventoryUnknown(t.Context(), "sb1", "it stalls", c.lives)
		if err != nil || (a.End != "") != c.ends || len(h.records(t, c.outcome)) != 1 {
			t.Errorf("%+v: %+v, %v", c, a, err)
		}
	}
}

// TestManyPackages: all have a record, few of what is not accounted for have an
// alarm of their own, and what was served does not use the run's records up.
func TestManyPackages(t *testing.T) {
	h := newHouse(t, Limits{Records: 700, Inventory: 900})
	h.Unregister("sb1")
	h.policy = parse(t, "packages: { default: allow, unaccounted: end }")
	must(t, h.Register(h.run()))
	var disk provenance.Disk
	for i := range 500 {
		name := fmt.Sprintf("p%d", i)
		_, err := h.Serve(t.Context(), serving(name, "1.0.0"))
		must(t, err)
		disk.Found.Packages = append(disk.Found.Packages, on("python "+name+" 1.0.0", "/x/"+name))
	}
	must(t, installed(h.Installed(t.Context(), "sb1", disk)))
	if n := len(h.records(t, audit.Installed)); n != 500 {
		t.Fatalf("%d installed records of 500", n)
	}
	for i := range provenance.MaxAlarms + 10 {
		disk.Found.Packages = append(disk.Found.Packages, on(fmt.Sprintf("node n%d 1.0.0", i), "/y"))
	}
	a, err := h.Installed(t.Context(), "sb1", disk)
	must(t, err)
	alarms := h.records(t, audit.Alarm)
	if last := alarms[len(alarms)-1]; len(alarms) != provenance.MaxAlarms+1 || last.Count != 10 || a.End == "" {
		t.Errorf("%d alarms, the last for %d; %+v", len(alarms), last.Count, a)
	}
	for i := range 1000 {
		disk.Found.Packages = append(disk.Found.Packages, on(fmt.Sprintf("go example.com/m%d v1.0.0", i), "/z"))
	}
	if _, err = h.Installed(t.Context(), "sb1", disk); err == nil {
		t.Error("a flood does not cut the run")
	}
	if sb := <-h.cuts; sb != "sb1" {
		t.Errorf("%s was cut", sb)
	}
}
