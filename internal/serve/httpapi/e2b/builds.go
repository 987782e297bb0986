package e2b

import (
	"cmp"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fairqueue"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/templatebuild"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/backend"
)

// newTemplate announces a build. How much a sandbox may have is the policy's affair.
type newTemplate struct {
	Name          string   `json:"name"`
	Alias         string   `json:"alias"`          // as older clients call it
	Tags          []string `json:"tags" most:"16"` // templatebuild.MaxTags
	TeamID        string   `json:"teamID"`
	CPUCount      int      `json:"cpuCount"`
	MemoryMB      int      `json:"memoryMB"`
	MinFreeDiskMB int      `json:"minFreeDiskMb"`
}

// announced is the answer.
type announced struct {
	TemplateID string   `json:"templateID"`
	BuildID    string   `json:"buildID"`
	Public     bool     `json:"public"`
	Names      []string `json:"names"`
	Tags       []string `json:"tags"`
	Aliases    []string `json:"aliases"`
}

func (c templateRoutes) announce(w http.ResponseWriter, r *keyedRequest) error {
	var body newTemplate
	if err := readJSON(r, &body); err != nil {
		return err
	}
	ref := cmp.Or(body.Name, body.Alias)
	if err := c.checkTemplateName(ref); err != nil {
		return err
	}
	name, tag, hasTag := strings.Cut(ref, ":")
	if !hasTag {
		tag = defaultTag
	}
	tags := []string{tag}
	for _, further := range body.Tags {
		if !slices.Contains(tags, further) {
			tags = append(tags, further)
		}
	}
	names, err := namesOf(name, tags)
	if err != nil {
		return err
	}
	begun, err := c.cfg.Builds.Begin(backend.OwnerOf(r.token), templateIDOf(r.token.ID, name), name, names)
	if err != nil {
		return err
	}
	return writeAnswer(r.Context(), w, http.StatusAccepted, announced{
		TemplateID: begun.Template, BuildID: begun.ID, Names: []string{name}, Tags: tags, Aliases: []string{name},
	})
}

// uploadsPath is where uploads are sent, with a ticket behind it.
const uploadsPath = "/uploads/"

// uploadLink says where a copy's files are to be sent. The holder of the link needs no key.
func (c templateRoutes) uploadLink(w http.ResponseWriter, r *keyedRequest) error {
	if !c.cfg.Builds.Known(r.token.ID, r.PathValue("id")) {
		return notFound("template", r.PathValue("id"))
	}
	present, ticket, err := c.cfg.Builds.Link(backend.OwnerOf(r.token), r.PathValue("hash"))
	if err != nil {
		return err
	}
	scheme := "http"
	if r.TLS != nil || strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https") {
		scheme = "https"
	}
	return writeAnswer(r.Context(), w, http.StatusCreated, map[string]any{"present": present, "url": scheme + "://" + r.Host + uploadsPath + ticket})
}

// Uploader is the token for which a request brings an upload.
func (c *Control) Uploader(r *http.Request) (token string, ok bool) {
	ticket, ok := strings.CutPrefix(r.URL.Path, uploadsPath)
	if !ok || c.cfg.Builds == nil {
		return "", false
	}
	return c.cfg.Builds.Holder(ticket)
}

// upload takes the files of a copy, as long as its token counts.
func (c templateRoutes) upload(w http.ResponseWriter, r *http.Request) {
	owner, ok := c.Uploader(r)
	if !ok {
		writeError(w, http.StatusForbidden, "this upload was not asked for, was sent already, or comes too late")
		return
	}
	counted, err := c.cfg.Underway.Join(owner, r)
	if err != nil {
		c.answerError(w, r, err)
		return
	}
	defer counted()
	ctx, stop := c.cfg.Tokens.During(r.Context(), owner)
	defer stop()
	control := http.NewResponseController(w)
	defer control.SetReadDeadline(time.Time{}) //nolint:errcheck // a writer of tests has no connection
	body := &heldUpload{uploadBody: uploadBody{r: r.Body, control: control}, stopped: ctx.Done()}
	if err := c.cfg.Builds.Receive(r.PathValue("ticket"), body); err != nil {
		c.answerError(w, r, err)
		return
	}
	w.WriteHeader(http.StatusOK)
}

// heldUpload ends when its token does.
type heldUpload struct {
	uploadBody

	stopped <-chan struct{}
}

// Read implements io.Reader.
func (u *heldUpload) Read(p []byte) (int, error) {
	select {
	case <-u.stopped:
		return 0, errors.New("the token does not count any more")
	default:
		return u.uploadBody.Read(p)
	}
}

// buildStart is a recipe as clients send it.
type buildStart struct {
	FromImage         string         `json:"fromImage"`
	FromTemplate      string         `json:"fromTemplate"`
	FromImageRegistry jsontext.Value `json:"fromImageRegistry"` // credentials, which are not kept
	Force             bool           `json:"force"`             // nothing is kept of earlier builds anyway
	StartCmd          string         `json:"startCmd"`
	ReadyCmd          string         `json:"readyCmd"`
	Steps             []struct {
		Type        string   `json:"type"`
		Args        []string `json:"args" most:"2000"`
		FilesHash   string   `json:"filesHash"`
		Force       bool     `json:"force"`
		ForceUpload *bool    `json:"forceUpload"`
		// How a client has packed what a step copies, which is done when it arrives.
		ResolveSymlinks *bool `json:"resolveSymlinks"`
		Gzip            *bool `json:"gzip"`
	} `json:"steps" most:"2000"` // that are too many for a build are told where it is asked about
}

func (c templateRoutes) startBuild(w http.ResponseWriter, r *keyedRequest) error {
	var body buildStart
	if err := readJSON(r, &body); err != nil {
		return err
	}
	recipe := templatebuild.Recipe{Base: cmp.Or(body.FromTemplate, body.FromImage), Start: body.StartCmd, Ready: body.ReadyCmd}
	for _, s := range body.Steps {
		recipe.Steps = append(recipe.Steps, templatebuild.Step{Type: s.Type, Args: s.Args, Hash: s.FilesHash})
	}
	template, id := r.PathValue("id"), r.PathValue("build")
	if _, _, err := c.cfg.Builds.Look(r.token.ID, template, id, 0, 0); err != nil {
		return err
	}
	req, workdir, err := c.baseRequest(r, body, id)
	if err != nil {
		err = c.cfg.Builds.Refuse(r.token.ID, template, id, err) // a client hears of it where it asks how the build goes
	} else {
		err = c.cfg.Builds.Start(template, id, req, workdir, recipe)
	}
	if err != nil {
		return err
	}
	w.WriteHeader(http.StatusAccepted)
	return nil
}

// baseRequest is the sandbox in which a recipe's steps are done, and its directory: of the
// template or snapshot that it is made from, under the policy that a sandbox of that has.
func (c templateRoutes) baseRequest(r *keyedRequest, body buildStart, id string) (sandbox.Request, string, error) {
	from := body.FromTemplate
	if from == "" {
		var err error
		if from, err = c.templateFor(body.FromImage); err != nil {
			return sandbox.Request{}, "", err
		}
	}
	req := sandbox.Request{
		Task: "builds a template from " + text.Shorten(from, 128), Linger: true, Lifetime: sandbox.Lifetime{TTL: longestBuild},
		Owner: backend.OwnerOf(r.token), User: "token " + r.token.Name, HostUID: c.cfg.HostUID, HostGID: c.cfg.HostGID,
	}
	of, err := c.findSource(r.Context(), r.token, from, &req)
	if err != nil {
		return req, "", err
	}
	named, err := c.choosePolicy(r.token, "", of)
	if err != nil {
		return req, "", err
	}
	req.Policy, req.PolicyText, req.PolicySource = named.Policy, named.Text, named.Path
	req.Labels = map[string]string{labelPolicy: named.Name, labelTemplate: from, templatebuild.Label: id}
	workdir := userHome
	if of != nil {
		req.Account, workdir = of.Of.Account, cmp.Or(of.Of.Workdir, of.Of.Account.Home, userHome) // the manager takes the account from there, too
		if of.Built != nil {
			req.Account.Default, workdir = of.Built.User, cmp.Or(of.Built.Workdir, workdir)
		}
	}
	return req, workdir, nil
}

// longestBuild is when the sandbox of a build ends that nobody ended.
const longestBuild = 2 * time.Hour

// templateFor is the template that stands for an image, as the operator or we say: no
// image is pulled here.
func (c templateRoutes) templateFor(image string) (string, error) {
	name, tag, _ := strings.Cut(image, ":")
	named := cmp.Or(c.cfg.Images[image], c.cfg.Images[name])
	switch {
	case image == "":
		return "", fault.Invalid("a template is built from a template: fromTemplate('%s')", baseTemplates()[0])
	case named != "":
		return named, nil
	case name == "e2bdev/base", name == "e2bdev/code-interpreter":
		return baseTemplates()[0], nil
	case name == "debian" && slices.Contains([]string{"", "latest", "stable", "slim", "stable-slim"}, tag):
		return "debian", nil
	}
	var names []string
	for _, k := range c.offered() {
		names = append(names, "fromTemplate('"+k.Name+"')")
	}
	return "", fault.New(fault.ErrNotFound, "the image %q is not available, because this server pulls no images; begin with one of its own templates: %s", text.Shorten(image, 120), strings.Join(names, " or "))
}

// buildInfo is how a build stands.
type buildInfo struct {
	TemplateID string               `json:"templateID"`
	BuildID    string               `json:"buildID"`
	Status     templatebuild.Status `json:"status"`
	Logs       []string             `json:"logs"` // of older servers: always empty
	LogEntries []buildEntry         `json:"logEntries"`
	Reason     *buildReason         `json:"reason,omitempty"`
}

type buildEntry struct {
	Timestamp stamp               `json:"timestamp"`
	Level     templatebuild.Level `json:"level"`
	Message   string              `json:"message"`
	Step      string              `json:"step,omitempty"`
}

type buildReason struct {
	Message    string       `json:"message"`
	Step       string       `json:"step,omitempty"`
	LogEntries []buildEntry `json:"logEntries"`
}

// maxEntries of a build's log in one answer.
const maxEntries = 1_000

func (c templateRoutes) buildStatus(w http.ResponseWriter, r *keyedRequest) error {
	info, err := c.look(r)
	if err != nil {
		return err
	}
	return writeAnswer(r.Context(), w, http.StatusOK, info)
}

// serveBuildLogs answers with the log alone.
func (c templateRoutes) serveBuildLogs(w http.ResponseWriter, r *keyedRequest) error {
	info, err := c.look(r)
	if err != nil {
		return err
	}
	return writeAnswer(r.Context(), w, http.StatusOK, map[string]any{"logs": info.LogEntries})
}

func (c templateRoutes) look(r *keyedRequest) (buildInfo, error) {
	offset, err := number0(r.URL.Query().Get("logsOffset"), 0)
	if err != nil {
		return buildInfo{}, err
	}
	limit, err := number0(r.URL.Query().Get("limit"), maxEntries)
	if err != nil {
		return buildInfo{}, err
	}
	b, entries, err := c.readBuild(r, offset, min(limit, maxEntries))
	if err != nil {
		return buildInfo{}, err
	}
	info := buildInfo{TemplateID: b.Template, BuildID: b.ID, Status: b.Status, Logs: []string{}, LogEntries: []buildEntry{}}
	for _, e := range entries {
		info.LogEntries = append(info.LogEntries, buildEntry{stamp(e.Time), e.Level, e.Text, e.Step})
	}
	if b.Status == templatebuild.Failed {
		info.Reason = &buildReason{Message: b.Reason, Step: b.Step, LogEntries: []buildEntry{}}
	}
	return info, nil
}

// readBuild reads a build with entries of its log, one request of a token at a time: until they are
// counted they take as much as entries may.
func (c templateRoutes) readBuild(r *keyedRequest, offset, most int) (templatebuild.Build, []templatebuild.Entry, error) {
	_, leave, err := c.buildReads.Take(fairqueue.For(r.Context(), r.token.ID))
	if errors.Is(err, fairqueue.ErrCrowded) {
		return templatebuild.Build{}, nil, fault.Exhausted(time.Second, "%d requests of this token wait for logs of builds already", readsLine)
	}
	if err != nil {
		return templatebuild.Build{}, nil, err
	}
	defer leave()
	b, entries, err := c.cfg.Builds.Look(r.token.ID, r.PathValue("id"), r.PathValue("build"), offset, most)
	if err != nil {
		return templatebuild.Build{}, nil, err
	}
	return b, entries, backend.Reserve(r.Context(), entryCopies*backend.SizeOf(entries))
}

// entryCopies is how often the entries are in memory: as they were read, and as they are answered.
const entryCopies = 2

// number0 reads a number of a query that is not below 0.
func number0(content string, absent int) (int, error) {
	if content == "" {
		return absent, nil
	}
	n, err := strconv.Atoi(content)
	if err != nil || n < 0 {
		return 0, fault.Invalid("%q is not a number from 0 on", text.Shorten(content, 40))
	}
	return n, nil
}
