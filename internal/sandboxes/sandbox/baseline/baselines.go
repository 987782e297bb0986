// Package baseline is what is installed in sandboxes: what a template brings, what lay on
// a sandbox's mounts before its first command, and what its commands left.
package baseline

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission"
	"github.com/cofferdam-dev/cofferdam/internal/kit/atomicfile"
	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/journal"
)

const (
	baselineForm = "-3.json" // ending of a baseline's file; the number is the form's
	mountsPrefix = "mounts-"
	projectDepth = 3 // below a read-only mount
)

// Config is what a Book works with. All fields are needed.
type Config struct {
	Keeper *keeper.Client
	Door   *admission.Controller
	Dir    string // keeps the baselines
	Log    *slog.Logger
}

// Book keeps the baselines. Safe for concurrent use.
type Book struct {
	cfg    Config
	guests guestDisks

	mu    sync.Mutex // guards known
	known map[string]channel.Inventory
}

// NewBook makes one that finds on the disk what one before it has learned.
func NewBook(cfg Config) *Book {
	return &Book{cfg: cfg, guests: guestDisks{cfg.Keeper}, known: map[string]channel.Inventory{}}
}

// Learn lists what a template brings, once per template, and what lies on
// the sandbox's mounts; it runs before any command, so nothing that the
// agent did is in it.
func (b *Book) Learn(ctx context.Context, info journal.Info) error {
	if err := b.learnTemplate(ctx, info); err != nil {
		return err
	}
	asks := mountAsks(info)
	if len(asks) == 0 {
		return nil
	}
	var before channel.Inventory
	for _, ask := range asks {
		found, err := b.guests.packages(context.WithoutCancel(ctx), info.ID, ask)
		if err != nil {
			return fault.Wrap(fault.ErrUnavailable, err, "what lies on the mounts can't be listed")
		}
		before.Packages = append(before.Packages, found.Packages...)
		before.Truncated = before.Truncated || found.Truncated
	}
	return writeKept(b.mountsPath(info.ID), before)
}

// mountAsks ask for what lies on mounts. Of those that are read-only only the
// projects matter, near the top: packages on them can be used, not installed.
func mountAsks(info journal.Info) []channel.InventoryAsk {
	var asks []channel.InventoryAsk
	if len(info.WritableMounts) > 0 {
		asks = append(asks, channel.InventoryAsk{Places: info.WritableMounts, Skip: info.ReadOnlyMounts})
	}
	if len(info.ReadOnlyMounts) > 0 {
		asks = append(asks, channel.InventoryAsk{Places: info.ReadOnlyMounts, Skip: info.WritableMounts, Depth: projectDepth})
	}
	return asks
}

func (b *Book) learnTemplate(ctx context.Context, info journal.Info) error {
	names := templateNames(info)
	if _, known := b.baseline(names...); known {
		return nil
	}
	if info.IsCopy() { // what lies there now its source's agent may have put there
		return fault.New(fault.ErrUnavailable, "what the template of the copy's source brings is not known any more, so what is in the copy can't be accounted for")
	}
	inv, err := b.guests.packages(ctx, info.ID, channel.InventoryAsk{Skip: slices.Concat(info.ReadOnlyMounts, info.WritableMounts)})
	if err != nil {
		return err
	}
	name := names[len(names)-1]
	b.mu.Lock()
	b.known[name] = inv
	b.mu.Unlock()
	return writeKept(b.baselinePath(name), inv)
}

// templateNames are the names of the baselines that tell what a sandbox's
// template brings, the best one first: what mounts lie over is in that of a
// sandbox without mounts only.
func templateNames(info journal.Info) []string {
	name := strings.TrimPrefix(info.Digest, "sha256:")
	if len(info.WritableMounts)+len(info.ReadOnlyMounts) == 0 {
		return []string{name}
	}
	return []string{name, name + "-" + mountsDigest(info)}
}

// baseline returns the first baseline of these names that there is; a restarted
// daemon finds it on disk.
func (b *Book) baseline(names ...string) (channel.Inventory, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, name := range names {
		inv, known := b.known[name]
		if known {
			return inv, true
		}
		inv, err := readKept(b.baselinePath(name))
		if err == nil {
			b.known[name] = inv
			return inv, true
		}
	}
	return channel.Inventory{}, false
}

func (b *Book) baselinePath(name string) string {
	return filepath.Join(b.cfg.Dir, name+baselineForm)
}

// mountsPath keeps what lay on a sandbox's mounts, as long as the sandbox lives.
func (b *Book) mountsPath(id string) string {
	return filepath.Join(b.cfg.Dir, mountsPrefix+id+baselineForm)
}

func readKept(path string) (channel.Inventory, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return channel.Inventory{}, err
	}
	var inv channel.Inventory
	err = json.Unmarshal(data, &inv)
	return inv, err
}

func writeKept(path string, inv channel.Inventory) error {
	data, err := json.Marshal(inv)
	if err != nil {
		return err
	}
	return atomicfile.Replace(path, data, 0o600)
}

// mountsDigest names where the mounts of a sandbox lie.
func mountsDigest(info journal.Info) string {
	sum := sha256.Sum256([]byte(strings.Join(slices.Concat(info.WritableMounts, []string{""}, info.ReadOnlyMounts), "\x00")))
	return hex.EncodeToString(sum[:8])
}

// Forget takes the list of what lay on a sandbox's mounts away.
func (b *Book) Forget(id string) {
	if err := os.Remove(b.mountsPath(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		b.cfg.Log.Warn("the list of what lay on a sandbox's mounts can't be removed", "sandbox", id, "err", err)
	}
}

// Sweep takes away the lists of sandboxes that are gone.
func (b *Book) Sweep(lives func(id string) bool) {
	kept, _ := filepath.Glob(b.mountsPath("*")) // the pattern is well formed
	for _, path := range kept {
		id := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(path), mountsPrefix), baselineForm)
		if !lives(id) {
			b.Forget(id)
		}
	}
}
