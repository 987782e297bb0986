package channel

import (
	"fmt"
	"time"
)

// Inventory is a page of what the guest says is installed. It is a claim.
//
// A guest takes stock once, when it is asked without Take, and keeps the result
// until its last page is fetched or stock is taken again: a reply is one frame,
// and the packages of a large project are more than that.
type Inventory struct {
	Packages []InstalledPackage `json:"packages"`
	// Truncated: there is more on the disk than an inventory has, and Bounds say why. An agent
	// of an earlier release gives no Bounds.
	Truncated bool             `json:"truncated,omitempty"`
	Bounds    []InventoryBound `json:"bounds,omitempty"`
	// Closed are places of the system in which everything that was looked at
	// belongs to root, and nobody else may write to it: as long as nothing has run
	// as root, an inventory need not look there again. In the last page.
	Closed []string `json:"closed,omitempty"`
	// Take names the result, for the next page. Next is where that begins; 0:
	// this is the last one.
	Take uint64 `json:"take,omitempty"`
	Next int    `json:"next,omitempty"`
}

// InventoryAsk asks for an inventory, or for one more page of it.
type InventoryAsk struct {
	// Places are the only directories to look in; none: wherever packages may
	// lie. Skip are directories that are not looked into, nor what is below.
	Places []string `json:"places,omitempty"`
	Skip   []string `json:"skip,omitempty"`
	// Depth is how far below the places to look; 0: as far as there is something.
	Depth int `json:"depth,omitempty"`
	// Take and From ask for the page of a stock that was taken; 0 takes it.
	Take uint64 `json:"take,omitempty"`
	From int    `json:"from,omitempty"`
}

// InstalledPackage is a package on the disk: a dist-info directory, a package of
// a node_modules, a module of a Go module cache.
type InstalledPackage struct {
	Ecosystem string `json:"ecosystem"` // pkgref.Ecosystem
	Name      string `json:"name"`      // as written there
	Version   string `json:"version"`
	Path      string `json:"path"`
	// Source: it is no installed package but the directory in which somebody
	// writes the package of this name; "" is a name that only a build tells.
	Source bool `json:"source,omitempty"`
	// From is the directory, or the built file, of the sandbox from which it was
	// installed, as its metadata says; "" if they don't.
	From string `json:"from,omitempty"`
}

// Bounds of one inventory.
const (
	MaxInventoryTime        = 20 * time.Second
	MaxInventoryDirectories = 200_000
	MaxInventoryPackages    = 20_000
	MaxInventoryBytes       = 12 << 20 // of JSON
	MaxInventoryPath        = 16 << 10 // bytes of a directory's path; programs can't name one of more than 4096
	MaxInventoryName        = 256      // bytes of a package's name or version
	MaxInventoryPlace       = 1024     // bytes of a package's path
)

// InventoryBound is why an inventory has not all that lies on the disk. How deep something lies
// is none: its path is.
type InventoryBound string

// The bounds that an inventory can meet.
const (
	BoundTime        InventoryBound = "time"
	BoundDirectories InventoryBound = "directories"
	BoundPackages    InventoryBound = "packages"
	BoundBytes       InventoryBound = "bytes"
	BoundPath        InventoryBound = "path"
	BoundName        InventoryBound = "name"
	BoundUnread      InventoryBound = "unread"
)

// String says what was met, as the end of a sentence about a sandbox's disk. Of a bound that this
// release does not know it says no more than that.
func (b InventoryBound) String() string {
	switch b {
	case BoundTime:
		return fmt.Sprintf("to list it took longer than %s", MaxInventoryTime)
	case BoundDirectories:
		return fmt.Sprintf("it has more than %d directories", MaxInventoryDirectories)
	case BoundPackages:
		return fmt.Sprintf("it has more than %d packages", MaxInventoryPackages)
	case BoundBytes:
		return fmt.Sprintf("the list of its packages is longer than %d MiB", MaxInventoryBytes>>20)
	case BoundPath:
		return fmt.Sprintf("a directory's path is longer than %d bytes", MaxInventoryPath)
	case BoundName:
		return fmt.Sprintf("a package's name or version is longer than %d bytes, or its path longer than %d", MaxInventoryName, MaxInventoryPlace)
	case BoundUnread:
		return "a directory could not be read"
	}
	return "a bound was met that is not known here"
}
