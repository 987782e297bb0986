// Package debian brings packages of the distribution to the builds of templates: apt, on
// the host, chooses and fetches them, and what it brought is handed out by its digest.
//
// The mirror is that of the operator's or the host's apt. A build's request comes to a set of
// packages, in the order in which dpkg is to take them.
//
// apt has directories of its own here. Of the host's configuration it reads what it is
// given: sources, keyrings and what its mirror needs. It verifies the mirror's signature,
// each list by the digest that is signed, and each package by the digest in a list; the
// last is done here once more, with the digest that goes on record.
//
// The guest says what is installed in its sandbox. It is read strictly and written anew
// before apt reads it, and can do no more than lead apt to another choice.
package debian

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fairqueue"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
)

// Bounds of one request.
const (
	MaxNames    = 200
	maxPackages = 1_000
	maxBytes    = 1 << 30 // of the packages' files
	maxOutput   = 4 << 20 // of apt's words
)

// Sources are where the packages come from, in apt's own words.
type Sources struct {
	Codename string   // of the distribution
	Lines    []string // of a sources.list
	Settings []string // as apt-config prints them
}

// Config is what an Archive works with. All fields are needed.
type Config struct {
	// Dir is the archive's own, and made by it; the host's apt reaches it as a user of
	// its own, where it has one.
	Dir     string
	Sources func(ctx context.Context) (Sources, error)
	Log     *slog.Logger
	// Writable are the directories of the host in which sandboxes may write, or could: no program is taken from there.
	// nil: there are none.
	Writable func() []hostpath.Tree
}

// Archive is what the mirror has. Safe for concurrent use: apt runs once at a time.
type Archive struct {
	cfg   Config
	turns *fairqueue.Shares // of the one apt that runs at a time, by owners
}

// Open makes an archive; what an earlier daemon left half-done goes.
func Open(cfg Config) (*Archive, error) {
	a := &Archive{cfg: cfg, turns: fairqueue.New(fairqueue.Limits{All: 1, Each: 1})}
	for _, dir := range []string{"", "etc/none.d", "etc/preferences.d", "lists/partial"} {
		if err := os.MkdirAll(filepath.Join(cfg.Dir, dir), 0o755); err != nil { //nolint:gosec // apt fetches as another user
			return nil, fault.Wrap(fault.ErrUnavailable, err, "the folder %s of the distribution's packages can't be made", cfg.Dir)
		}
	}
	left, _ := filepath.Glob(filepath.Join(cfg.Dir, setPattern))
	for _, dir := range left {
		if err := os.RemoveAll(dir); err != nil {
			return nil, fault.Wrap(fault.ErrUnavailable, err, "%s can't be removed", dir)
		}
	}
	return a, nil
}

// setPattern finds the folders of sets.
const setPattern = "set-*"

// awaitTurn waits for an owner's turn to run apt: however much another has in line, one run of it at most
// comes before.
func (a *Archive) awaitTurn(ctx context.Context, owner string) (leave func(), err error) {
	if _, leave, err = a.turns.Take(fairqueue.For(ctx, owner)); err != nil {
		return nil, context.Cause(ctx)
	}
	return leave, nil
}

// Package is one of a set.
type Package struct {
	Name         string
	Version      string
	Architecture string
	File         string // the file's name
	SHA256       string // hexadecimal
	Size         int64
	URL          string // without credentials
	// Brings are the releases of other ecosystems that lie in it, once it was fetched.
	Brings []pkgref.Ref
}

// Request is what a build asks for.
type Request struct {
	Owner      string   // whose turn it takes: a token, or "" for the host's
	Names      []string // as ValidName has them
	Recommends bool     // what they recommend is wanted, too
	Installed  []Installed
	// Codename is the distribution's that is in the sandbox; "" if it does not say.
	Codename string
}

var nameAndVersion = regexp.MustCompile(`^[a-z0-9][a-z0-9+.-]*[a-z0-9+](=[A-Za-z0-9.+~:-]+)?$`)

// ValidName tells whether a text is the name of a package, perhaps with a version. apt
// takes more than that: patterns, and names with a sign behind them that takes them away.
func ValidName(name string) bool {
	return len(name) <= 200 && nameAndVersion.MatchString(name)
}
