// Package npm is the protocol of npm's registry: packuments in full and
// abbreviated form, tarballs, signing keys and attestations, and the looking
// into a tarball before anybody gets it. Nothing here fetches, stores or decides.
//
// A packument is the page about a project, with a manifest per release: what the registry says of
// it, made of the package.json that was published. The abbreviated packument has what installers
// need of the manifests. A manifest writes a spec beside a dependency's name: a range, a tag, an
// alias of another package, or something that no registry serves.
//
// What a page shows: releases that a run may not have are not on it, since
// these clients have no mark for them, and every dist-tag that pointed to one
// points to the highest release below it that is left. The clients then say that
// there is no matching version; npm alone prints the npm-notice that comes with
// the page (Notice). A tarball that a client knows without asking for the page,
// from a lockfile, is refused by itself, with a reason.
//
// The publisher's texts stay data: a page keeps a release's `deprecated`, which
// clients print as the registry's word, and the description; it loses the
// readme, which is long and which no installer reads.
package npm

import (
	"net/url"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
)

// The media types of a packument.
const (
	typeFull        = "application/json"
	typeAbbreviated = "application/vnd.npm.install-v1+json"
)

// HTTP's numbers for the statuses of answers.
const (
	statusOK               = 200
	statusBadRequest       = 400
	statusForbidden        = 403
	statusNotFound         = 404
	statusFailedDependency = 424
)

// The bounds of what an upstream may answer. Real packuments have up to 100 MB.
const (
	maxPackument   = 256 << 20
	maxKeys        = 1 << 20
	maxAttestation = 16 << 20
)

// Protocol implements ecosystem.Protocol and some of its optional abilities.
type Protocol struct{}

var (
	_ ecosystem.Protocol       = Protocol{}
	_ ecosystem.Inspector      = Protocol{}
	_ ecosystem.Lister         = Protocol{}
	_ ecosystem.Noticer        = Protocol{}
	_ ecosystem.PassThrough    = Protocol{}
	_ ecosystem.ToolchainNamer = Protocol{}
)

// New returns the protocol.
func New() Protocol { return Protocol{} }

// Ecosystem is pkgref.Node.
func (Protocol) Ecosystem() pkgref.Ecosystem { return pkgref.Node }

// IndexAsk asks for the full packument, since the abbreviated one has no times.
func (Protocol) IndexAsk(base, project string) ecosystem.Ask {
	return ecosystem.Ask{
		URL:    base + escapeName(project),
		Accept: typeFull,
		Types:  []string{typeFull, typeAbbreviated},
		Most:   maxPackument,
	}
}

// PassAsk asks for the registry's signing keys, or a release's attestations.
func (Protocol) PassAsk(base string, r ecosystem.Route) ecosystem.Ask {
	ask := ecosystem.Ask{Accept: typeFull, Types: []string{typeFull}}
	if r.Project == "" {
		ask.URL, ask.Most = base+"-/npm/v1/keys", maxKeys
		return ask
	}
	ask.URL = base + "-/npm/v1/attestations/" + escapeName(r.Project) + "@" + url.PathEscape(r.Version)
	ask.Most = maxAttestation
	return ask
}

// maxQuoted bounds others' text in a sentence.
const maxQuoted = 80
