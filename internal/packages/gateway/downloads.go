package gateway

import (
	"net/http"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
)

// ruleDownloads is on record of such downloads. It is no key of a policy: none lets them in, since nothing
// says which bytes are the right ones.
const ruleDownloads = "downloads"

// elsewhere says what to do instead.
const elsewhere = "outside the registries, and no policy lets that in; docs/templates.md#downloads says how to have them"

// sideDownloads has the kinds of files that tools fetch from outside the registries, with words for
// each in the plural. The guest (internal/sandboxes/guest) points clients to them.
func sideDownloads() map[string]string {
	return map[string]string{
		"chromedriver": "the builds of ChromeDriver",
		"cypress":      "the builds of Cypress",
		"electron":     "the builds of Electron",
		"geckodriver":  "the builds of geckodriver",
		"node":         "Node builds",
		"node-headers": "node headers",
		"node-sass":    "prebuilt binaries of node-sass",
		"playwright":   "the browser builds of Playwright",
		"prisma":       "the engines of Prisma",
		"puppeteer":    "the browser builds of Puppeteer",
		"python":       "Python builds",
		"rust":         "Rust toolchains",
		"sentry-cli":   "the builds of sentry-cli",
	}
}

// serveDownload refuses a side download and records it.
func (g *Gateway) serveDownload(q *query) {
	kind, _, _ := strings.Cut(strings.TrimPrefix(q.r.URL.EscapedPath(), "/"), "/")
	what, known := sideDownloads()[kind]
	reason := what + " come from " + elsewhere
	if !known {
		kind = "other"
		reason = "this comes from " + elsewhere
	}
	r := ecosystem.Refusal{Cause: ecosystem.ByPolicy, Reason: reason, Rule: ruleDownloads}
	r.RequestID = g.failed(q, door.Failure{
		SourceURL: "https://" + DownloadsName + "/" + kind + "/", ResolvedBy: policy.ByToolchain, Rule: r.Rule, Reason: r.Reason,
	})
	if r.RequestID != "" {
		q.w.Header().Set("X-Cofferdam-Request", r.RequestID)
	}
	a := ecosystem.Problem(http.StatusForbidden, r)
	a.ContentType, a.Body = "text/plain; charset=utf-8", []byte(a.Phrase+"\n")
	q.sendAnswer(a)
}
