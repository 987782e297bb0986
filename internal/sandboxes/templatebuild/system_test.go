package templatebuild_test

import (
	"context"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/debian"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/templatebuild"
)

// system is the distribution of a shop: what its door decides, what was wished for, and
// what the sandbox's dpkg says. The shop's lock guards it.
type system struct {
	denied, fetching, unrecorded error
	requests                     []debian.Request
	events                       []string // in their order
	unpacked                     bool     // dpkg did its work
	idle                         bool     // dpkg says that it did, and did nothing
	broken                       bool     // dpkg fails
	closed                       int
}

// note keeps what happened.
func (s *shop) note(event string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.system.events = append(s.system.events, event)
}

// AdmitSystem implements templatebuild.Distribution.
func (s *shop) AdmitSystem(_ context.Context, _, _ string, names []string) error {
	s.note("admit " + strings.Join(names, " "))
	return s.system.denied
}

// ServeSystem implements templatebuild.Distribution.
func (s *shop) ServeSystem(_ context.Context, _, id string, p admission.SystemPackage) error {
	s.note("serve " + p.Name + " " + p.SHA256[:2])
	if id == "" || p.Asked != (p.Name == "tool") || len(p.Brings) != 1 {
		s.t.Errorf("the record is of %+v in the build %q", p, id)
	}
	return s.system.unrecorded
}

// SystemInstalled implements templatebuild.Distribution.
func (s *shop) SystemInstalled(_ context.Context, _, _ string, p admission.SystemPackage) error {
	s.note("installed " + p.Name)
	return nil
}

// archive implements templatebuild.Config.Archive.
func (s *shop) archive(_ context.Context, w debian.Request) (templatebuild.SystemSet, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.system.requests = append(s.system.requests, w)
	if w.Names[0] == "absent" {
		return nil, fault.New(fault.ErrUnavailable, "the packages can't be installed: Unable to locate package absent")
	}
	return (*set)(s), nil
}

// set is what each request comes to: nothing if it is installed.
type set shop

func (s *set) Packages() []debian.Package {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.system.unpacked && len(s.system.requests) > 1 {
		return nil
	}
	of := func(name, version string) debian.Package {
		return debian.Package{
			Name: name, Version: version, Architecture: "amd64", File: name + ".deb", SHA256: strings.Repeat(name[:1], 64), Size: 4,
			Brings: []pkgref.Ref{{Ecosystem: pkgref.Python, Name: name, Version: "1"}},
		}
	}
	return []debian.Package{of("lib", "1.0"), of("tool", "2:1.0")}
}

func (s *set) Order() []debian.Action {
	return []debian.Action{{Unpack: []string{"lib.deb"}, Configure: []string{"lib"}}, {Unpack: []string{"tool.deb"}, Configure: []string{"tool"}}}
}

func (s *set) Fetch(context.Context) error { return s.system.fetching }

func (s *set) Open(p debian.Package) (io.ReadCloser, error) {
	(*shop)(s).note("open " + p.Name)
	return io.NopCloser(strings.NewReader("deb of " + p.Name)), nil
}

func (s *set) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.system.closed++
	return nil
}

// dpkg answers a sandbox's commands as dpkg would.
func (s *shop) dpkg(c sandbox.Command) (channel.Exit, string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	row := func(name, version string) string {
		return "install ok installed\t" + name + "\t" + version + "\tamd64" + strings.Repeat("\t", 9) + "\n"
	}
	switch text := strings.Join(c.Argv, " "); {
	case strings.Contains(text, "dpkg-query"):
		if c.User != "root" || !strings.Contains(c.Judged, "apt-get") {
			s.t.Errorf("what is installed is asked as %q, and the rules see %q", c.User, c.Judged)
		}
		list := "steady\n" + row("dpkg", "1.21")
		if s.system.unpacked && !s.system.idle {
			list += row("lib", "1.0") + row("tool", "2:1.0")
		}
		return channel.Exit{}, list
	case strings.Contains(text, "--unpack"):
		if s.system.broken {
			return channel.Exit{Code: 1}, "error setting ownership\n"
		}
		s.system.unpacked = true
		s.system.events = append(s.system.events, "dpkg as "+c.User)
	default:
		s.system.events = append(s.system.events, "run "+c.Argv[len(c.Argv)-1])
	}
	return channel.Exit{}, ""
}

func asRoot(commands ...string) []templatebuild.Step {
	steps := runs(commands...)
	for i := range steps {
		steps[i].Args = append(steps[i].Args, "root")
	}
	return steps
}

const install = "apt-get update && DEBIAN_FRONTEND=noninteractive DEBCONF_NOWARNINGS=yes apt-get install -y --no-install-recommends tool"

// TestPackagesOfTheDistribution: each is decided about, recorded and then written, dpkg
// does its work, and what it did stands in the ledger, of builds on this one, too.
func TestPackagesOfTheDistribution(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.answer = s.dpkg
	b, log := s.make(templatebuild.Recipe{Base: "debian", Steps: asRoot(install+" && tool --version", install)})
	if b.Status != templatebuild.Ready {
		t.Fatalf("%+v\n%s", b, log)
	}
	want := []string{"admit tool", "serve lib ll", "open lib", "serve tool tt", "open tool", "dpkg as root with rights", "installed lib", "installed tool", "run tool --version", "admit tool"}
	if !slices.Equal(s.system.events, want) {
		t.Errorf("what happened is %q,\nwant %q", s.system.events, want)
	}
	if w := s.system.requests[0]; w.Codename != "steady" || w.Recommends || !slices.Equal(w.Names, []string{"tool"}) || len(w.Installed) != 1 {
		t.Errorf("the request was %+v", w)
	}
	if s.written["/var/cache/.packages/lib.deb"] != "deb of lib" || s.written["/var/cache/.packages/order"] != "unpack lib.deb\nconfigure lib\nunpack tool.deb\nconfigure tool\n" {
		t.Errorf("inside is %q", s.written)
	}
	if last := s.files[len(s.files)-1]; last.Op != channel.FileRemove || last.Path != "/var/cache/.packages" {
		t.Errorf("the packages stay in the template: the last call was %+v", last)
	}
	if len(s.elevated) != 1 || !strings.Contains(strings.Join(s.elevated[0], " "), "--unpack") {
		t.Errorf("the commands that had rights are %q, want dpkg and no other", s.elevated)
	}
	if s.system.closed != 2 {
		t.Errorf("%d of 2 sets are closed", s.system.closed)
	}
	all, err := s.Snapshots(t.Context())
	if err != nil || len(all) != 1 || len(all[0].Built.System) != 2 {
		t.Fatalf("the ledger is of %+v, %v", all, err)
	}
	if p := all[0].Built.System[1]; p.Name != "tool" || p.Version != "2:1.0" || p.Architecture != "amd64" || p.SHA256 != strings.Repeat("t", 64) {
		t.Errorf("the ledger has %+v", p)
	}
	for _, words := range []string{"2 packages with 0 KiB: lib 1.0, tool 2:1.0", "installed already: tool"} {
		if !strings.Contains(log, words) {
			t.Errorf("the log does not say %q:\n%s", words, log)
		}
	}
}

// TestPackagesThatAreNotBrought: nothing is inside that was refused, could not be verified
// or could not be recorded.
func TestPackagesThatAreNotBrought(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		prepare func(s *shop)
		steps   []templatebuild.Step
		says    string
		never   string // happened
	}{
		"denied": {func(s *shop) {
			s.system.denied = fault.New(fault.ErrForbidden, "packages of the distribution are denied")
		}, asRoot(install), "are denied", "serve"},
		"not listed": {func(*shop) {}, asRoot("apt-get install absent"), "Unable to locate package absent", "serve"},
		"unverified": {func(s *shop) {
			s.system.fetching = fault.New(fault.ErrUnavailable, "a file is another than its list says")
		}, asRoot(install), "another than its list says", "serve"},
		"unrecorded": {func(s *shop) { s.system.unrecorded = fault.New(fault.ErrUnavailable, "the log can't be written") }, asRoot(install), "the log can't be written", "open"},
		"not done":   {func(s *shop) { s.system.idle = true }, asRoot(install), "dpkg did not install lib 1.0", "installed"},
		"broken":     {func(s *shop) { s.system.broken = true }, asRoot(install), "exit code 1: error setting ownership", "installed"},
		"not root":   {func(*shop) {}, runs(install), "only root installs packages", "admit"},
		"an option":  {func(*shop) {}, asRoot("apt-get install --allow-unauthenticated tool"), "the option --allow-unauthenticated is not known", "admit"},
		"too late":   {func(*shop) {}, asRoot("false; apt-get install tool"), "there is no apt in a sandbox", "admit"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t)
			s.answer = func(c sandbox.Command) (channel.Exit, string) {
				if strings.HasPrefix(c.Argv[len(c.Argv)-1], "false") {
					return channel.Exit{Code: 127}, "apt-get: command not found\n"
				}
				return s.dpkg(c)
			}
			c.prepare(s)
			b, log := s.make(templatebuild.Recipe{Base: "debian", Steps: c.steps})
			if b.Status != templatebuild.Failed || b.Step != "1" || !strings.Contains(b.Reason, c.says) {
				t.Errorf("the build is %+v, want %q\n%s", b, c.says, log)
			}
			if i := slices.IndexFunc(s.system.events, func(e string) bool { return strings.HasPrefix(e, c.never) }); i >= 0 {
				t.Errorf("%q happened", s.system.events[i])
			}
			s.nothingLeft()
		})
	}
}
