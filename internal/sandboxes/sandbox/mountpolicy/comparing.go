package mountpolicy

import (
	"context"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

const (
	// mostCompared bounds what one request may have compared, 16 Gi: bytes of paths, times bytes of the patterns with which they are
	// compared. An agent may have made both. A tree as large as Linux's, 90,000 paths of 40 bytes, takes 3.4 Gi with a hundred patterns of
	// 10 bytes, which is 9 seconds of a core at the 2.6 ns that such patterns were measured to take for one. The worst that were found take
	// 7 to 14 ns, so that the bound is two to four minutes of a core. Less would refuse 100,000 paths of 60 bytes, as a project with its packages
	// in it has, with a copied file of 1.7 KiB: 10 Gi.
	mostCompared = 16 << 30
	// openCost is what it takes to open a path, as so much of that: some ten microseconds.
	openCost = 4 << 10
)

// Comparing is what one request may still compare, in all its mounts and on the ways to these. Not safe for concurrent use: it is its
// request's alone.
type Comparing struct{ left int64 }

// NewComparing is of a request that has compared nothing yet.
func NewComparing() *Comparing { return &Comparing{left: mostCompared} }

// matchesIgnore tells whether an ignore file's patterns hide a path, which has this name from the file's directory. It is an error to have
// compared too much for what is shown, and to go on when the request has ended.
func (c *Comparing) matchesIgnore(ctx context.Context, file string, ignore patterns, shown, name string, dir bool) (bool, error) {
	cost := int64(len(name)) * int64(ignore.bytes)
	if dir {
		cost *= 2 // it is compared with a slash as well
	}
	if err := c.takeCost(ctx, cost, shown, file); err != nil {
		return false, err
	}
	return matchesPath(ignore, name, dir), nil
}

// takeCost counts some work before it is done.
func (c *Comparing) takeCost(ctx context.Context, cost int64, shown, file string) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if c.left -= cost; c.left < 0 {
		return fault.Invalid("%s has so many and such long paths in it, or on the way to it, that comparing them with the patterns of %s takes too long; ignore less there, or mount a smaller directory", shown, file)
	}
	return nil
}

// matchesPath asks with a trailing slash for directories, so that patterns such as
// "build/" mean directories only.
func matchesPath(ignore patterns, rel string, dir bool) bool {
	return ignore.hidesPath(rel) || dir && ignore.hidesPath(rel+"/")
}
