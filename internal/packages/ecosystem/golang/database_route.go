package golang

import (
	"math"
	"math/big"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/mod/module"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/cofferdam-dev/cofferdam/internal/decide/redact"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
)

// databases is the folder of a proxy below which it relays databases.
const databases = "sumdb"

// tileHeight is the one that the go command asks for.
const tileHeight = 8

// The most that a database's answers have: a record of a few lines and a head,
// or 256 hashes.
const maxAnswer = 64 << 10

// databaseName is a host name, and databaseFolder a piece of path after it.
var (
	databaseName   = regexp.MustCompile(`^[a-z0-9][a-z0-9-]*(\.[a-z0-9][a-z0-9-]*)+$`)
	databaseFolder = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)
)

// databaseRoute reads what is below sumdb/. path is the whole of it.
func databaseRoute(segments []string, path string) (ecosystem.Route, error) {
	at := slices.IndexFunc(segments, func(s string) bool {
		return s == "supported" || s == "latest" || s == "lookup" || s == "tile"
	})
	if at < 1 || !databaseName.MatchString(segments[0]) {
		return ecosystem.Route{}, noRoute()
	}
	for _, s := range segments[1:at] {
		if !databaseFolder.MatchString(s) {
			return ecosystem.Route{}, noRoute()
		}
	}
	route := ecosystem.Route{Kind: ecosystem.RoutePass, File: strings.Join(segments, "/"), Path: path, Log: strings.Join(segments[:at], "/")}
	rest := segments[at+1:]
	switch {
	case segments[at] == "lookup":
		return lookupRoute(route, strings.Join(rest, "/"))
	case segments[at] == "tile":
		return tileRoute(route, strings.Join(segments[at:], "/"))
	case len(rest) > 0:
		return ecosystem.Route{}, noRoute()
	case segments[at] == "supported":
		route.Kind = ecosystem.RouteAnswered
		route.Answer = &ecosystem.Answer{Status: statusOK, ContentType: typeText}
	}
	return route, nil
}

// lookupRoute reads MODULE@VERSION.
func lookupRoute(route ecosystem.Route, release string) (ecosystem.Route, error) {
	escaped, stem, _ := strings.Cut(release, "@")
	project, err := unescapeModule(escaped)
	if err != nil {
		return ecosystem.Route{}, err
	}
	version, err := module.UnescapeVersion(stem)
	if err != nil || escapeVersion(version) != stem || len(version) > maxVersion || !isRelease(project, version) {
		return ecosystem.Route{}, fault.Invalid("%q is not a version that %s can have", redact.Cut(stem, maxQuoted), redact.Cut(project, maxQuoted))
	}
	route.Project, route.Version = project, version
	return route, nil
}

// tileRoute reads a tile of hashes. A tile's path says all of it,
// so its bytes never change; a partial tile is the beginning of the full one.
func tileRoute(route ecosystem.Route, path string) (ecosystem.Route, error) {
	tile, err := tlog.ParseTilePath(path)
	if err != nil || tile.H != tileHeight || tile.L < 0 || tile.Path() != path {
		return ecosystem.Route{}, fault.Invalid("the path is not that of a tile that the go command asks for")
	}
	route.Immutable = true
	route.Part = tile.W * tlog.HashSize
	route.Whole, _, _ = strings.Cut(route.File, ".p/")
	route.Records = recordsUnder(tile)
	return route, nil
}

// recordsUnder is how many records a log has at least that has a tile: a hash of the tile is over
// 256 records for each level below it. A number that no log can have is told as the largest that
// there can be.
func recordsUnder(t tlog.Tile) int64 {
	hashes, shift := new(big.Int).Mul(big.NewInt(t.N), big.NewInt(1<<tileHeight)), uint(tileHeight*t.L)
	hashes.Add(hashes, big.NewInt(int64(t.W)))
	if hashes.Lsh(hashes, shift); !hashes.IsInt64() {
		return math.MaxInt64
	}
	return hashes.Int64()
}

// PassAsk asks the upstream for what a route of a database names.
func (Protocol) PassAsk(base string, r ecosystem.Route) ecosystem.Ask {
	// Route.File was decoded; of what decoding changes only "+", "!" and "@"
	// occur in it, and those are themselves in a path.
	u := url.URL{Path: r.File}
	escaped := strings.NewReplacer("%21", "!", "%2B", "+", "%40", "@").Replace(u.EscapedPath())
	return ecosystem.Ask{URL: base + databases + "/" + escaped, Accept: "*/*", Most: maxAnswer}
}
