package npm

import (
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
)

// The answers that the gateway itself gives to an audit: nothing, in the form that each
// client expects, and why.
const (
	noAdvisories = "{}"
	noAudit      = `{"actions":[],"advisories":{},"muted":[],"metadata":{"vulnerabilities":{"info":0,"low":0,"moderate":0,"high":0,"critical":0},` +
		`"dependencies":0,"devDependencies":0,"optionalDependencies":0,"totalDependencies":0}}`
	auditNotice = "cofferdam answers no advisories here: packages are judged when they are installed, so an empty audit says nothing"
)

// service is the route of what is below BASE/-/. Other services are refused with 403: clients take
// it for an answer and look nowhere else. segments were decoded by nobody yet.
func service(raw []string, r ecosystem.Request, reads bool) (ecosystem.Route, error) {
	segments, _, err := ecosystem.Segments("/" + strings.Join(raw, "/"))
	if err != nil {
		return ecosystem.Route{}, err
	}
	name := strings.Join(segments, "/")
	switch {
	case name == "ping" && reads:
		return answeredRoute("{}", ""), nil
	case name == "npm/v1/security/advisories/bulk" && r.Method == "POST":
		return answeredRoute(noAdvisories, auditNotice), nil
	case (name == "npm/v1/security/audits" || name == "npm/v1/security/audits/quick") && r.Method == "POST":
		return answeredRoute(noAudit, auditNotice), nil
	case !reads || r.Query != "":
		return refusedService("this service of the registry is not there for sandboxes: the gateway serves packages, and only reads"), nil
	case name == "npm/v1/keys":
		return ecosystem.Route{Kind: ecosystem.RoutePass, Path: "/-/npm/v1/keys"}, nil
	case strings.HasPrefix(name, "npm/v1/attestations/"):
		return attestations(strings.TrimPrefix(name, "npm/v1/attestations/"))
	case len(segments) > 2 && segments[0] == "package" && segments[len(segments)-1] == "dist-tags":
		return tagsRoute(segments[1 : len(segments)-1])
	}
	return refusedService("this service of the registry is not there for sandboxes: the gateway serves packages, and only reads"), nil
}

// attestations is the route of a release's attestations, NAME@VERSION.
func attestations(release string) (ecosystem.Route, error) {
	at := strings.LastIndexByte(release, '@')
	if at < 1 {
		return refusedService("attestations are asked for by name@version"), nil
	}
	ref, err := pkgref.New(pkgref.Node, release[:at], release[at+1:])
	if err != nil {
		return ecosystem.Route{}, err
	}
	if ref.Version == "" {
		return refusedService("attestations are asked for by name@version"), nil
	}
	return ecosystem.Route{Kind: ecosystem.RoutePass, Project: ref.Name, Version: ref.Version, Path: "/-/npm/v1/attestations/" + release}, nil
}

func tagsRoute(segments []string) (ecosystem.Route, error) {
	project, rest, err := splitName(segments)
	if err != nil {
		return ecosystem.Route{}, err
	}
	if len(rest) > 0 {
		return refusedService("dist-tags are asked for by a package's name"), nil
	}
	return ecosystem.Route{Kind: ecosystem.RouteIndex, Project: project, Release: distTags}, nil
}

// answeredRoute is a route that the gateway answers from here.
func answeredRoute(body, notice string) ecosystem.Route {
	a := &ecosystem.Answer{Status: statusOK, Phrase: "OK", ContentType: typeFull, Body: []byte(body)}
	if notice != "" {
		a.Header = map[string]string{noticeHeader: notice}
	}
	return ecosystem.Route{Kind: ecosystem.RouteAnswered, Answer: a}
}

func refusedService(reason string) ecosystem.Route {
	a := refusal(statusForbidden, ecosystem.Refusal{Cause: ecosystem.ByPolicy, Reason: reason})
	return ecosystem.Route{Kind: ecosystem.RouteAnswered, Answer: &a}
}
