package baseline

import (
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/journal"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/mountpolicy"
)

// guest answers like an agent, or lies.
type guest func(ask channel.InventoryAsk) channel.Inventory

func (g guest) call(ask channel.InventoryAsk) ([]byte, error) { return json.Marshal(g(ask)) }

func TestPagesArePutTogether(t *testing.T) {
	packages := make([]channel.InstalledPackage, 2500)
	for i := range packages {
		packages[i].Name = strings.Repeat("x", i%7)
	}
	got, err := fetchPages(channel.InventoryAsk{Skip: []string{"/ro"}}, guest(func(ask channel.InventoryAsk) channel.Inventory {
		if ask.From > 0 && ask.Take != 7 || len(ask.Skip) != 1 {
			t.Errorf("a page is asked for with %+v", ask)
		}
		page := channel.Inventory{Take: 7, Truncated: ask.From == 1000}
		if page.Next = ask.From + 1000; page.Next >= len(packages) {
			page.Next = 0
			page.Packages = packages[ask.From:]
			return page
		}
		page.Packages = packages[ask.From:page.Next]
		return page
	}).call)
	if err != nil || !slices.Equal(got.Packages, packages) || !got.Truncated {
		t.Errorf("%d packages, truncated %t, %v", len(got.Packages), got.Truncated, err)
	}
}

// TestBoundsThatAreMadeUp: each bound that a guest says that its list met is told once, and all that
// it makes up are one, which leaves room for the others.
func TestBoundsThatAreMadeUp(t *testing.T) {
	said := []channel.InventoryBound{channel.BoundTime}
	for i := range 1000 {
		said = append(said, channel.InventoryBound(strings.Repeat("x", i)))
	}
	said = append(said, channel.BoundPath, channel.BoundTime)
	got, err := fetchPages(channel.InventoryAsk{}, guest(func(channel.InventoryAsk) channel.Inventory { return channel.Inventory{Bounds: said} }).call)
	if want := []channel.InventoryBound{channel.BoundTime, "", channel.BoundPath}; err != nil || !slices.Equal(got.Bounds, want) {
		t.Errorf("told are %d bounds: %.200q, %v", len(got.Bounds), got.Bounds, err)
	}
}

// TestLyingGuests: what has no end, or does not fit together, is refused whole.
func TestLyingGuests(t *testing.T) {
	one := []channel.InstalledPackage{{Name: "x"}}
	large := []channel.InstalledPackage{{Name: strings.Repeat("x", 100<<10)}}
	for what, g := range map[string]guest{
		"stands still": func(channel.InventoryAsk) channel.Inventory { return channel.Inventory{Next: 1, Packages: nil} },
		"goes back":    func(channel.InventoryAsk) channel.Inventory { return channel.Inventory{Next: -1, Packages: one} },
		"skips": func(a channel.InventoryAsk) channel.Inventory {
			return channel.Inventory{Next: a.From + 2, Packages: one}
		},
		"changes its list": func(a channel.InventoryAsk) channel.Inventory {
			return channel.Inventory{Take: uint64(a.From) + 1, Next: a.From + 1, Packages: one}
		},
		"has no end": func(a channel.InventoryAsk) channel.Inventory {
			return channel.Inventory{Next: a.From + 1, Packages: one}
		},
		"has large packages": func(a channel.InventoryAsk) channel.Inventory {
			return channel.Inventory{Next: a.From + 1, Packages: large}
		},
	} {
		calls := 0
		_, err := fetchPages(channel.InventoryAsk{}, func(a channel.InventoryAsk) ([]byte, error) {
			calls++
			return g.call(a)
		})
		if !errors.Is(err, fault.ErrInvalid) || calls > maxPackages+1 {
			t.Errorf("a guest that %s: %v after %d calls", what, err, calls)
		}
	}
	if _, err := fetchPages(channel.InventoryAsk{}, func(channel.InventoryAsk) ([]byte, error) { return []byte(`{"packages": 1}`), nil }); !errors.Is(err, fault.ErrInvalid) {
		t.Errorf("no list: %v", err)
	}
}

// TestBaselineOfATemplate: a sandbox whose mounts lie over parts of the template
// never tells sandboxes without them what the template brings.
func TestBaselineOfATemplate(t *testing.T) {
	b := NewBook(Config{Dir: t.TempDir()})
	bare, mounted := journal.Info{Digest: "sha256:d"}, journal.Info{Digest: "sha256:d"}
	mounted.WritableMounts, mounted.ReadOnlyMounts = mountpolicy.Destinations([]engine.Mount{
		{Destination: "/opt"}, {Destination: "/data", ReadOnly: true}, {Destination: "/a"},
	})
	if !slices.Equal(mounted.WritableMounts, []string{"/a", "/opt"}) || !slices.Equal(mounted.ReadOnlyMounts, []string{"/data"}) {
		t.Fatalf("%+v", mounted)
	}
	part := channel.Inventory{Packages: []channel.InstalledPackage{{Name: "part"}}}
	whole := channel.Inventory{Packages: []channel.InstalledPackage{{Name: "part"}, {Name: "covered"}}}
	names := templateNames(mounted)
	if err := writeKept(b.baselinePath(names[len(names)-1]), part); err != nil {
		t.Fatal(err)
	}
	if _, known := b.baseline(templateNames(bare)...); known {
		t.Error("a part of the template is taken for all of it")
	}
	if got, known := b.baseline(names...); !known || len(got.Packages) != 1 {
		t.Errorf("%+v, %t", got, known)
	}
	if err := writeKept(b.baselinePath(templateNames(bare)[0]), whole); err != nil {
		t.Fatal(err)
	}
	if got, known := b.baseline(names...); !known || len(got.Packages) != 2 {
		t.Errorf("%+v, %t", got, known)
	}
}

// TestWhatCannotHaveChanged: what a template shows of the host is not looked into,
// unless something writable lies over it.
func TestWhatCannotHaveChanged(t *testing.T) {
	template := []string{"/opt", "/opt/people/eve", "/usr"}
	for _, c := range []struct{ writable, readOnly, want []string }{
		{nil, nil, template},
		{[]string{"/workspace"}, []string{"/data"}, []string{"/data", "/opt", "/opt/people/eve", "/usr"}},
		{[]string{"/opt"}, nil, []string{"/usr"}},
		{[]string{"/opt/people"}, nil, []string{"/opt", "/usr"}},
		{[]string{"/usr/local/lib", "/us"}, nil, template}, // the guest finds what is mounted below
	} {
		info := journal.Info{TemplateMounts: template, WritableMounts: c.writable, ReadOnlyMounts: c.readOnly}
		if got := unchangeable(info); !slices.Equal(got, c.want) {
			t.Errorf("%v over it: %v, want %v", c.writable, got, c.want)
		}
		if !slices.Equal(template, []string{"/opt", "/opt/people/eve", "/usr"}) {
			t.Fatal("the sandbox's own list was changed")
		}
	}
}

func TestListsOfGoneSandboxesAreSwept(t *testing.T) {
	b := NewBook(Config{Dir: t.TempDir()})
	for _, id := range []string{"sb-lives", "sb-gone"} {
		if err := writeKept(b.mountsPath(id), channel.Inventory{}); err != nil {
			t.Fatal(err)
		}
	}
	b.Sweep(func(id string) bool { return id == "sb-lives" })
	if _, err := os.Stat(b.mountsPath("sb-lives")); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(b.mountsPath("sb-gone")); err == nil {
		t.Error("the list of a sandbox that is gone is kept")
	}
}
