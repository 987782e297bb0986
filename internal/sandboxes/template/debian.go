package template

import (
	"context"
	_ "embed" // the script that finishes the tree
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
)

//go:embed customize.sh
var customizeScript []byte

const (
	// buildEpoch is the time of every file that no package owns, and
	// imageUUID the image's: so that the same input gives the same bytes.
	buildEpoch = "1767225600"
	imageUUID  = "b4a0fbcd-3e0e-4c55-8f32-6d1a5b1c6f01"

	agentHome = "/home/agent"
	agentUser = "agent"
)

// debianBuild is one build of a template of the distribution's packages.
type debianBuild struct {
	store  *Store
	layout layout
	place  string // the build's own folder
	open   string // the same for a namespace's root, if a normal user builds
	made   string // what becomes the generation
	log    *buildLog
	report func(Progress) // takes one call at a time; see reportDetail and reportStep

	distribution distribution
	tool         string // mmdebstrap's or debootstrap's path
	mkfs         string // mkfs.erofs, or empty: the root is a directory
	debs         string // folder of packages as the mirror has them, or empty
	tools        []Tool
	toolsFile    string // where the archive of all tools will be, or empty
	wheelsFile   string // the same of the packages of Python
	reporting    sync.Mutex
}

// reportStep reports a step, and notes it in the log. It may be called by several at once.
func (b *debianBuild) reportStep(p Progress) {
	b.reporting.Lock()
	defer b.reporting.Unlock()
	b.log.noteStep(p)
	b.report(p)
}

func (b *debianBuild) runBuild(ctx context.Context) (Template, error) {
	if err := b.prepareTools(); err != nil {
		return Template{}, err
	}
	var err error
	if b.log, err = openLog(b.store.LogPath(b.layout.name)); err != nil {
		return Template{}, diskFault(err, b.store.dir)
	}
	defer b.log.closeLog()
	b.reportStep(Progress{Step: "prepare", Detail: b.describeBuild() + "; its log is " + b.log.path, Percent: 1})
	if err := b.openUp(); err != nil {
		return Template{}, err
	}
	if b.open != "" {
		defer func() { _ = b.store.removeTree(context.WithoutCancel(ctx), b.open) }()
	}
	if err := b.installTree(ctx); err != nil {
		return Template{}, err
	}
	return b.finishGeneration(ctx)
}

// installTree has the tools fetched and the tree made, both at once: most of the one is
// waiting and compiling, most of the other is one process's unpacking. Where one
// fails the other is ended, and the first failure is told.
func (b *debianBuild) installTree(parent context.Context) error {
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	var group sync.WaitGroup
	if pins := b.store.pins(runtime.GOARCH); b.layout.tools && len(pins) > 0 {
		place := b.place
		if b.open != "" {
			place = b.open
		}
		b.toolsFile = filepath.Join(place, "tools.tar")
		if b.layout.wheels {
			b.wheelsFile = filepath.Join(place, "wheels.tar")
		}
		safego.In(&group, func() {
			if err := safego.Try(func() error { return b.bringAll(ctx, pins) }); err != nil {
				cancel(err)
			}
		})
	} else if b.layout.tools {
		b.reportStep(Progress{Step: "tools", Detail: "left out: none are pinned for " + runtime.GOARCH})
	}
	if err := b.bootstrap(ctx); err != nil {
		cancel(err) // the first cause stays
	}
	group.Wait()
	if cause := context.Cause(ctx); cause != nil && parent.Err() == nil {
		return cause
	}
	return interrupted(parent, b.layout.name)
}

// interrupted is the error of a build that somebody ended; nil if nobody did.
func interrupted(ctx context.Context, name string) error {
	if ctx.Err() == nil {
		return nil
	}
	return fmt.Errorf("the build of template %s was interrupted, and nothing of it is left: %w", name, ctx.Err())
}

// prepareTools finds the tools and the mirror, and says what is missing at once.
func (b *debianBuild) prepareTools() error {
	var err error
	if b.distribution, err = b.store.distribution(); err != nil {
		return err
	}
	if b.layout.wheels {
		if _, err := wheelsFor(b.distribution.codename, runtime.GOARCH); err != nil {
			return err
		}
	}
	b.mkfs = b.store.findTool("mkfs.erofs")
	b.tool = b.store.findTool("mmdebstrap")
	if b.tool == "" {
		b.tool = b.store.findTool("debootstrap")
	}
	if b.tool == "" {
		return fault.New(fault.ErrUnavailable, "building the template %s needs mmdebstrap: apt-get install -y mmdebstrap erofs-utils (or use the template host)", b.layout.name)
	}
	if os.Geteuid() == 0 {
		return nil
	}
	return b.checkRootless()
}

// checkRootless says what a normal user needs for a build.
func (b *debianBuild) checkRootless() error {
	instead := asRoot(b.layout.name)
	switch {
	case filepath.Base(b.tool) != "mmdebstrap":
		return fault.New(fault.ErrUnavailable, "a normal user can build this template only with mmdebstrap: apt-get install -y mmdebstrap erofs-utils; or %s", instead)
	case b.mkfs == "":
		return fault.New(fault.ErrUnavailable, "a normal user can build this template only as an image: apt-get install -y erofs-utils; or %s", instead)
	case b.store.findTool("newuidmap") == "":
		return fault.New(fault.ErrUnavailable, "a normal user can build this template only with subordinate user ids: apt-get install -y uidmap, and a line for the user in /etc/subuid and /etc/subgid; or %s", instead)
	}
	return nil
}

// asRoot is what else a normal user can do. Each user's templates are their own, so that
// one of root's is of no use to another.
func asRoot(name string) string {
	return "do all of it as root (sudo cofferdam template build " + name + ", then sudo cofferdam run), or use the template host"
}

func (b *debianBuild) describeBuild() string {
	what := "from this host's " + b.distribution.id + " mirror"
	if b.distribution.id == "ubuntu" {
		what = "with this host's Ubuntu packages, for no Debian mirror is set up here"
	}
	form := "an EROFS image"
	if b.mkfs == "" {
		form = "a directory (mkfs.erofs is missing: apt-get install -y erofs-utils gives faster sandboxes)"
	}
	return fmt.Sprintf("%s %s, as %s", b.distribution.codename, what, form)
}

// finishGeneration turns what the tools left into a generation.
func (b *debianBuild) finishGeneration(ctx context.Context) (Template, error) {
	b.reportStep(Progress{Step: "digest", Percent: 96})
	t := Template{
		Name: b.layout.name, User: agentUser, Home: agentHome, Recipe: b.store.recipe(b.layout),
		Env:   debianEnv(b.layout),
		Roots: "/etc/ssl/certs/ca-certificates.crt",
		// The same content has the same digest; when it was made is no part of it.
		Created: time.Now().UTC().Truncate(time.Second),
	}
	var err error
	if b.mkfs != "" {
		t.Root = engine.Root{Kind: engine.RootImage, Path: "rootfs.erofs"}
		image := filepath.Join(b.made, t.Root.Path)
		if err := syncFile(image); err != nil {
			return Template{}, diskFault(err, b.store.dir)
		}
		t.Digest, t.Bytes, err = digestFile(ctx, image)
	} else {
		t.Root = engine.Root{Kind: engine.RootDir, Path: "root"}
		t.Digest, t.Bytes, err = digestTree(ctx, filepath.Join(b.made, t.Root.Path))
	}
	if err != nil {
		return Template{}, diskFault(err, b.store.dir)
	}
	if err := b.keepDebs(ctx); err != nil {
		return Template{}, diskFault(err, b.store.dir)
	}
	if err := b.writeLedger(); err != nil {
		return Template{}, err
	}
	b.reportStep(Progress{Step: "done", Detail: fmt.Sprintf("%d MB", t.Bytes>>20), Percent: 100})
	return t, nil
}

func debianEnv(l layout) map[string]string {
	env := map[string]string{
		"PATH": agentHome + "/.venv/bin:" + agentHome + "/.local/bin:" + agentHome + "/go/bin:" +
			"/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/.cofferdam/bin",
		"VIRTUAL_ENV": agentHome + "/.venv",
		"HOME":        agentHome,
		"LANG":        "C.UTF-8",
		"SHELL":       "/bin/bash",
		// Where npm install --global may write, and what node-gyp would fetch.
		"npm_config_prefix":                   agentHome + "/.local",
		"npm_package_config_node_gyp_nodedir": "/" + localLib + "node",
		// The standard library is compiled in the template, where go otherwise
		// compiles it once in every sandbox; go looks there only if it is told to.
		"GODEBUG": "installgoroot=all",
	}
	if l.wheels {
		env["MATPLOTLIBRC"] = "/etc/matplotlibrc"
	}
	return env
}
