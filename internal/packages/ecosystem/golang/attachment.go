package golang

import (
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"

	"github.com/cofferdam-dev/cofferdam/internal/decide/redact"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
)

// The most that is read of a .mod and of a .info; the largest real ones have
// some hundred kilobytes and some hundred bytes.
const (
	maxMod  = 4 << 20
	maxInfo = 64 << 10
)

const typeInfo = "application/json"

// AttachmentAsk asks for a .info, a .mod or @latest.
func (Protocol) AttachmentAsk(base string, r ecosystem.Route) ecosystem.Ask {
	module := base + escapePath(r.Project) + "/"
	switch {
	case r.File == fileLatest:
		return ecosystem.Ask{URL: module + fileLatest, Accept: "*/*", Most: maxInfo}
	case strings.HasSuffix(r.File, extMod):
		return ecosystem.Ask{URL: module + folder + "/" + escapeVersion(r.Version) + extMod, Accept: "*/*", Most: maxMod}
	}
	return ecosystem.Ask{URL: module + folder + "/" + escapeVersion(r.Version) + extInfo, Accept: "*/*", Most: maxInfo}
}

// Requires is the route of a release's .mod.
func (Protocol) Requires(project, version string) (ecosystem.Route, error) {
	if !isRelease(project, version) {
		return ecosystem.Route{}, fault.Invalid("%q is not a version that %s can have", redact.Cut(version, maxQuoted), redact.Cut(project, maxQuoted))
	}
	last := escapeVersion(version) + extMod
	return versionRoute(project, last, "/"+escapePath(project)+"/"+folder+"/"+last)
}

// Attachment reads a .mod, whose bytes the database knows, or a .info or
// @latest, of which clients get no more than what was understood.
func (Protocol) Attachment(r ecosystem.Route, body []byte) (ecosystem.Attachment, error) {
	if strings.HasSuffix(r.File, extMod) && !r.Query {
		return modAttachment(r, body)
	}
	return infoAttachment(r, body)
}

func modAttachment(r ecosystem.Route, body []byte) (ecosystem.Attachment, error) {
	m, err := readMod(body)
	if err != nil {
		return ecosystem.Attachment{}, err
	}
	if m.path == "" {
		return ecosystem.Attachment{}, fault.Invalid("the go.mod names no module")
	}
	return ecosystem.Attachment{
		Version: r.Version, ContentType: typeText, Body: body, Witnessed: true, Requirements: m.requirements,
	}, nil
}

// info is what of a .info is passed on. Where the version came from is the
// publisher's word and not what the gateway serves.
type info struct {
	Version string    `json:"Version"`
	Time    time.Time `json:"Time,omitzero"`
}

func infoAttachment(r ecosystem.Route, body []byte) (ecosystem.Attachment, error) {
	var read struct {
		Version string `json:"Version"`
		Time    string `json:"Time"`
	}
	if len(body) > maxInfo || !utf8.Valid(body) {
		return ecosystem.Attachment{}, fault.Invalid("the proxy's answer about the version is not what module proxies send")
	}
	if err := json.Unmarshal(body, &read); err != nil {
		return ecosystem.Attachment{}, fault.Wrap(fault.ErrInvalid, err, "the proxy's answer about the version is not the JSON that module proxies send")
	}
	if !isRelease(r.Project, read.Version) {
		return ecosystem.Attachment{}, fault.Invalid("the proxy answered %q, which is not a version that the module can have", redact.Cut(read.Version, maxQuoted))
	}
	if !r.Query && read.Version != r.Version {
		return ecosystem.Attachment{}, fault.Invalid("the proxy answered with %s to the question for another version", read.Version)
	}
	out := info{Version: read.Version}
	if read.Time != "" {
		when, err := time.Parse(time.RFC3339, read.Time)
		if err != nil {
			return ecosystem.Attachment{}, fault.Invalid("the proxy's answer about the version has an invalid time")
		}
		out.Time = when.UTC()
	}
	data, err := json.Marshal(out)
	if err != nil {
		return ecosystem.Attachment{}, fault.Wrap(fault.ErrInvalid, err, "the proxy's answer about the version has an invalid time")
	}
	return ecosystem.Attachment{Version: read.Version, ContentType: typeInfo, Body: append(data, '\n')}, nil
}
