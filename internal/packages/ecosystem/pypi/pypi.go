// Package pypi is the Python simple repository protocol: project pages in JSON
// and HTML, wheels and source distributions, and the `.metadata` sidecar of a
// wheel. Nothing here fetches, stores or decides.
//
// A wheel is a built distribution (.whl), an sdist a source one. The METADATA file of a wheel has its
// core metadata. A registry marks a file as yanked if clients are to take it only where it is
// pinned; this package gives the same mark to files that a run's policy withholds.
//
// How a page shows what a run may not have, as pip and uv were seen to need it
// (docs/ecosystems.md): where some file is allowed, the others are marked
// yanked with the reason, so that an open requirement takes an allowed version
// and a pinned one reaches the file, whose refusal is printed. Where none is,
// they are listed unmarked, since pip prints a reason only for files.
package pypi

import (
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/decide/redact"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
)

// The media types of a project's page.
const (
	typeJSON   = "application/vnd.pypi.simple.v1+json"
	typeHTML   = "application/vnd.pypi.simple.v1+html"
	typeText   = "text/html"
	typeLatest = "application/vnd.pypi.simple.latest+json"
	typeLatHTM = "application/vnd.pypi.simple.latest+html"
)

// HTTP's numbers for the statuses of refusals.
const (
	badRequest       = 400
	forbidden        = 403
	notFound         = 404
	failedDependency = 424
	tooMany          = 429
	legalReasons     = 451
)

// Protocol implements ecosystem.Protocol, ecosystem.Describer, ecosystem.Inspector and
// ecosystem.Builder.
type Protocol struct{}

var (
	_ ecosystem.Protocol  = Protocol{}
	_ ecosystem.Describer = Protocol{}
	_ ecosystem.Inspector = Protocol{}
	_ ecosystem.Builder   = Protocol{}
)

// New returns the protocol.
func New() Protocol { return Protocol{} }

// Ecosystem is pkgref.Python.
func (Protocol) Ecosystem() pkgref.Ecosystem { return pkgref.Python }

// Probe implements ecosystem.Prober.
func (Protocol) Probe() string { return "pip" }

// IndexAsk asks for JSON, since HTML has no upload time, and accepts HTML of
// an index that speaks nothing else.
func (Protocol) IndexAsk(base, project string) ecosystem.Ask {
	return ecosystem.Ask{
		URL:    base + project + "/",
		Accept: typeJSON + ", " + typeHTML + ";q=0.2, " + typeText + ";q=0.1",
		Types:  []string{typeJSON, typeHTML, typeText},
	}
}

// ParseIndex reads a project's page in JSON or HTML. Pages are rendered from
// the index alone, so it writes no rows.
func (Protocol) ParseIndex(project string, page ecosystem.Page, _ ecosystem.Rows) (*ecosystem.Index, error) {
	media, _, _ := strings.Cut(page.ContentType, ";")
	switch strings.ToLower(strings.TrimSpace(media)) {
	case typeJSON:
		return parseJSON(project, page)
	case typeHTML, typeText:
		return parseHTML(project, page)
	}
	return nil, fault.Invalid("the index answered with the content type %q; a project's page is JSON or HTML", redact.Cut(page.ContentType, maxQuoted))
}

// Refuse words a refusal: a reason phrase, which pip prints for files, and a
// problem document, which uv prints. Statuses: docs/ecosystems.md.
func (Protocol) Refuse(r ecosystem.Refusal) ecosystem.Answer {
	return ecosystem.Problem(statusOf(r), r)
}

func statusOf(r ecosystem.Refusal) int {
	switch r.Cause {
	case ecosystem.Malformed:
		return badRequest
	case ecosystem.Missing, ecosystem.NoSuchRoute:
		return notFound
	case ecosystem.TooMuch:
		return tooMany
	case ecosystem.Unverified, ecosystem.Unreachable, ecosystem.Declined:
		// Neither client retries it, and uv, which takes 401, 403 and 404 of an
		// index for "ask the next one", shows the reason.
		return failedDependency
	case ecosystem.ByPolicy:
	}
	if r.Route == ecosystem.RouteIndex {
		return legalReasons
	}
	return forbidden
}

// artifactKind is policy's word for what a file is.
func artifactKind(f pkgref.PythonFile) policy.ArtifactKind {
	if f.Wheel {
		return policy.KindWheel
	}
	return policy.KindSdist
}

// maxQuoted bounds others' text in a sentence.
const maxQuoted = 80
