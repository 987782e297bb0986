package templatebuild

import (
	"context"
	_ "embed" // the script of an install
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission"
	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
	"github.com/cofferdam-dev/cofferdam/internal/packages/debian"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
)

//go:embed install.sh
var installScript string

// packagesPlace is where packages lie inside while they are installed. Only root may
// write above it.
const packagesPlace = "/var/cache/.packages"

// listScript says which release of which distribution a sandbox has, and what is installed.
const listScript = `( . /etc/os-release; printf '%s\n' "${VERSION_CODENAME-}" ) 2>/dev/null || echo; exec "$@"`

// Distribution decides about packages of the distribution and records them;
// *admission.Controller is one.
type Distribution interface {
	AdmitSystem(ctx context.Context, sandbox, build string, names []string) error
	ServeSystem(ctx context.Context, sandbox, build string, p admission.SystemPackage) error
	SystemInstalled(ctx context.Context, sandbox, build string, p admission.SystemPackage) error
}

// SystemSet are the packages that an install comes to; *debian.Set is one.
type SystemSet interface {
	Packages() []debian.Package
	Order() []debian.Action
	Fetch(ctx context.Context) error
	Open(p debian.Package) (io.ReadCloser, error)
	Close() error
}

// installSystem brings packages of the distribution into the sandbox and has dpkg install
// them. Each is decided about before anything is fetched, verified before it is recorded,
// and recorded before its first byte is inside. Only dpkg has rights, and no process of it
// outlives it.
func (j *job) installSystem(ctx context.Context, t task) (err error) {
	want := t.install
	if len(want.names) == 0 {
		return nil // the lists alone, which each install reads anew
	}
	if err := j.b.cfg.Distribution.AdmitSystem(ctx, j.box, j.g.ID, want.names); err != nil {
		return err
	}
	set, err := j.resolveInstall(ctx, t)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, set.Close()) }()
	all := set.Packages()
	if len(all) == 0 {
		j.g.log.addLine(Info, t.number, "installed already: "+strings.Join(want.names, " "), true)
		return nil
	}
	j.g.log.addLine(Info, t.number, "of the distribution: "+titles(all), true)
	if err := set.Fetch(ctx); err != nil {
		return err
	}
	all = set.Packages() // with what lies in them
	if err := j.bringPackages(ctx, t, set, all); err != nil {
		return err
	}
	if err := j.elevated(ctx, t.number, dpkgCommand(t)); err != nil {
		return err
	}
	if err := j.writeFile(ctx, channel.File{Op: channel.FileRemove, Path: packagesPlace, User: "root"}); err != nil {
		return err
	}
	return j.settleSystem(ctx, t, all)
}

// dpkgCommand is the one command of a build that has rights: packages give files to other users
// and groups. The policy's rules see the step.
func dpkgCommand(t task) sandbox.Elevated {
	return sandbox.Elevated{Argv: scriptOf(installScript, packagesPlace), Judged: t.title, Timeout: longestStep}
}

// scriptOf is a script and its arguments as a command.
func scriptOf(script string, args ...string) []string {
	return append([]string{"/bin/bash", "-c", script, "apt"}, args...)
}

// titles names packages, for the build's log.
func titles(all []debian.Package) string {
	var names []string
	var size int64
	for _, p := range all {
		names, size = append(names, p.Name+" "+p.Version), size+p.Size
	}
	return fmt.Sprintf("%s with %d KiB: %s", text.Count(len(all), "package", "packages"), size>>10, text.Shorten(strings.Join(names, ", "), 2_000))
}

// asRoot is a script that root runs for a step. The policy's rules see the step.
func (j *job) asRoot(t task, script string, args ...string) sandbox.Command {
	return sandbox.Command{
		Argv: scriptOf(script, args...), Judged: t.title, Dir: "/", User: "root", Timeout: longestStep,
	}
}

// resolveInstall finds out what a step's install comes to.
func (j *job) resolveInstall(ctx context.Context, t task) (SystemSet, error) {
	codename, installed, err := j.installedSystem(ctx, t)
	if err != nil {
		return nil, err
	}
	return j.b.cfg.Archive(ctx, debian.Request{Owner: j.g.Owner, Names: t.install.names, Recommends: t.install.recommends, Installed: installed, Codename: codename})
}

// installedSystem asks the sandbox what dpkg has installed.
func (j *job) installedSystem(ctx context.Context, t task) (codename string, all []debian.Installed, err error) {
	c := j.asRoot(t, listScript, debian.Query()...)
	c.CapBytes = debian.MaxInstalled
	text, err := j.askCommand(ctx, c)
	if err != nil {
		return "", nil, fmt.Errorf("what is installed in the sandbox: %w", err)
	}
	codename, text, _ = strings.Cut(text, "\n")
	all, err = debian.ReadInstalled(text)
	if err == nil && len(all) == 0 {
		err = fault.New(fault.ErrConflict, "apt-get: the template has no packages of a distribution; begin with fromTemplate('debian')")
	}
	return strings.TrimSpace(codename), all, err
}

// bringPackages records each package and writes it into the sandbox.
func (j *job) bringPackages(ctx context.Context, t task, set SystemSet, all []debian.Package) error {
	if err := j.writeFile(ctx, channel.File{Op: channel.FileRemove, Path: packagesPlace, User: "root"}); err != nil && !errors.Is(err, fault.ErrNotFound) {
		return err
	}
	if err := j.writeFile(ctx, channel.File{Op: channel.FileMkdir, Path: packagesPlace, User: "root"}); err != nil {
		return err
	}
	for _, p := range all {
		if err := j.b.cfg.Distribution.ServeSystem(ctx, j.box, j.g.ID, recorded(t, p)); err != nil {
			return err
		}
		if err := j.bringPackage(ctx, set, p); err != nil {
			return err
		}
	}
	var order strings.Builder
	for _, a := range set.Order() {
		if len(a.Unpack) > 0 {
			fmt.Fprintf(&order, "unpack %s\n", strings.Join(a.Unpack, " "))
		}
		if len(a.Configure) > 0 {
			fmt.Fprintf(&order, "configure %s\n", strings.Join(a.Configure, " "))
		}
	}
	return j.writeRootFile(ctx, packagesPlace+"/order", strings.NewReader(order.String()))
}

func (j *job) bringPackage(ctx context.Context, set SystemSet, p debian.Package) (err error) {
	file, err := set.Open(p)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return j.writeRootFile(ctx, packagesPlace+"/"+p.File, file)
}

// recorded is a package for the record.
func recorded(t task, p debian.Package) admission.SystemPackage {
	asked := slices.ContainsFunc(t.install.names, func(name string) bool {
		name, _, _ = strings.Cut(name, "=")
		return name == p.Name
	})
	return admission.SystemPackage{
		Name: p.Name, Version: p.Version, Architecture: p.Architecture, File: p.File, SHA256: p.SHA256, Size: p.Size, URL: p.URL, Asked: asked, Brings: p.Brings,
	}
}

// settleSystem looks whether all is installed that was brought, and puts it into the
// template's ledger.
func (j *job) settleSystem(ctx context.Context, t task, all []debian.Package) error {
	_, installed, err := j.installedSystem(ctx, t)
	if err != nil {
		return err
	}
	for _, p := range all {
		if !slices.ContainsFunc(installed, func(i debian.Installed) bool { return i.Name == p.Name && i.Version == p.Version }) {
			return fault.New(fault.ErrConflict, "dpkg did not install %s %s", p.Name, p.Version)
		}
		if err := j.b.cfg.Distribution.SystemInstalled(ctx, j.box, j.g.ID, recorded(t, p)); err != nil {
			return err
		}
		j.system = slices.DeleteFunc(j.system, func(s sandbox.SystemPackage) bool { return s.Name == p.Name })
		j.system = append(j.system, sandbox.SystemPackage{Name: p.Name, Version: p.Version, Architecture: p.Architecture, SHA256: p.SHA256})
	}
	return nil
}

// inheritSystem takes what the builds below this one brought.
func (j *job) inheritSystem(ctx context.Context) error {
	if j.req.Snapshot == "" {
		return nil
	}
	all, err := j.b.cfg.Sandboxes.Snapshots(ctx)
	if err != nil {
		return err
	}
	if i := slices.IndexFunc(all, func(s sandbox.Snapshot) bool { return s.ID == j.req.Snapshot }); i >= 0 && all[i].Built != nil {
		j.system = slices.Clone(all[i].Built.System)
	}
	return nil
}

// writeRootFile makes a file of root's in the sandbox.
func (j *job) writeRootFile(ctx context.Context, path string, from io.Reader) error {
	conn, _, err := j.b.cfg.Sandboxes.OpenFile(ctx, j.box, channel.File{Op: channel.FileWrite, Path: path, User: "root", Mode: 0o644})
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // WriteFile has the answer
	defer safego.When(ctx, func() { _ = conn.Close() })()
	if _, err = channel.WriteFile(conn, from, nil); err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
