package channel

// Inventory is a page of what the guest says is installed. It is a claim.
//
// A guest takes stock once, when it is asked without Take, and keeps the result
// until its last page is fetched or stock is taken again: a reply is one frame,
// and the packages of a large project are more than that.
type Inventory struct {
	Packages []InstalledPackage `json:"packages"`
	// Truncated: there is more on the disk than an inventory has.
	Truncated bool `json:"truncated,omitempty"`
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
