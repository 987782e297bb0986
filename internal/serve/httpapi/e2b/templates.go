package e2b

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/template"
)

// templateInfo is a template as clients see it.
type templateInfo struct {
	TemplateID  string   `json:"templateID"`
	BuildID     string   `json:"buildID"`
	CPUCount    int      `json:"cpuCount"`   // settled by the policy: 0
	MemoryMB    int      `json:"memoryMB"`   // settled by the policy: 0
	DiskSizeMB  int      `json:"diskSizeMB"` // settled by the policy: 0
	Public      bool     `json:"public"`
	Aliases     []string `json:"aliases"`
	Names       []string `json:"names"`
	CreatedAt   stamp    `json:"createdAt"`
	UpdatedAt   stamp    `json:"updatedAt"`
	BuildCount  int      `json:"buildCount"`
	SpawnCount  int      `json:"spawnCount"`
	BuildStatus string   `json:"buildStatus"`
	EnvdVersion string   `json:"envdVersion"`
	// Nobody's, and not counted; clients want the names.
	CreatedBy     *struct{} `json:"createdBy"`
	LastSpawnedAt *stamp    `json:"lastSpawnedAt"`
}

// offered are the templates that clients may ask for. The one that shows the
// host's own programs is not among them, unless it is the default.
func (c *Control) offered() []template.Known {
	return slices.DeleteFunc(slices.Clone(c.cfg.Templates.Known()), func(k template.Known) bool {
		return k.Name == template.NameHost && c.defaultTemplate() != template.NameHost
	})
}

// defaultTemplate is the one that clients get now that ask for "base".
func (c *Control) defaultTemplate() string { return c.cfg.Templates.Meant(c.cfg.DefaultTemplate) }

// isTemplate reports whether a name is a template's and not a snapshot's.
func (c *Control) isTemplate(name string) bool {
	return slices.Contains(baseTemplates(), name) ||
		slices.ContainsFunc(c.cfg.Templates.Known(), func(k template.Known) bool { return k.Name == name })
}

// readyTemplates are the offered templates that are built.
func (c *Control) readyTemplates(r *keyedRequest) ([]templateInfo, error) {
	built, err := c.cfg.Templates.List(r.Context())
	if err != nil {
		return nil, err
	}
	all := []templateInfo{}
	for _, k := range c.offered() {
		status, made := "waiting", time.Time{}
		if at := slices.IndexFunc(built, func(t template.Template) bool { return t.Name == k.Name }); at >= 0 {
			status, made = "ready", built[at].Created
		}
		names := []string{k.Name}
		if k.Name == c.defaultTemplate() {
			names = append(names, baseTemplates()...)
		}
		all = append(all, templateInfo{
			TemplateID: k.Name, BuildID: buildIDOf(k.Name), Public: true, Aliases: names, Names: names, CreatedAt: stamp(made), UpdatedAt: stamp(made),
			BuildCount: 1, BuildStatus: status, EnvdVersion: EnvdVersion,
		})
	}
	return all, nil
}

// templateRoutes are about templates and their builds.
type templateRoutes struct{ *Control }

func (c templateRoutes) listTemplates(w http.ResponseWriter, r *keyedRequest) error {
	p, err := pageOf(r.URL.Query())
	if err != nil {
		return err
	}
	paged := r.URL.Path != "/templates" // the older list has no pages
	all, err := c.knownTemplates(r)
	if err != nil {
		return err
	}
	slices.SortFunc(all, func(a, b templateInfo) int { return cmp.Compare(templateKey(a), templateKey(b)) })
	if !paged {
		return writeAnswer(r.Context(), w, http.StatusOK, all)
	}
	return writeAnswer(r.Context(), w, http.StatusOK, cutPage(w, p, all, templateKey, false))
}

func templateKey(t templateInfo) string { return sortKey(time.Time(t.CreatedAt), t.TemplateID) }

// knownTemplates are the installation's templates and those that the caller has built.
func (c templateRoutes) knownTemplates(r *keyedRequest) ([]templateInfo, error) {
	all, err := c.readyTemplates(r)
	if err != nil {
		return nil, err
	}
	own, err := c.snapshots(r.Context(), r.token)
	if err != nil {
		return nil, err
	}
	return append(all, builtOf(own)...), nil
}

// builtOf are the templates of which snapshots, the newest first, are builds.
func builtOf(own []sandbox.Snapshot) []templateInfo {
	all := []templateInfo{}
	for _, s := range own {
		if s.Built == nil || len(s.Names()) == 0 {
			continue
		}
		at := slices.IndexFunc(all, func(t templateInfo) bool { return t.TemplateID == s.Built.Template })
		if at < 0 {
			at = len(all)
			name := nameOf(s.Names()[0]).name
			all = append(all, templateInfo{
				TemplateID: s.Built.Template, BuildID: s.Built.Build, Aliases: []string{name}, Names: []string{name},
				UpdatedAt: stamp(s.Created), BuildStatus: "ready", EnvdVersion: EnvdVersion,
			})
		}
		all[at].CreatedAt = stamp(s.Created)
		all[at].BuildCount++
	}
	return all
}

// findTemplate finds a template by its id or one of its names; a tag must be there.
func (c templateRoutes) findTemplate(r *keyedRequest, name string) (templateInfo, error) {
	all, err := c.readyTemplates(r)
	if err != nil {
		return templateInfo{}, err
	}
	for _, t := range all {
		if slices.Contains(t.Names, nameOf(name).keptName()) {
			return t, nil
		}
	}
	own, err := c.snapshots(r.Context(), r.token)
	if err != nil {
		return templateInfo{}, err
	}
	for _, t := range builtOf(own) {
		if called := nameOf(name); t.TemplateID != called.name && !slices.Contains(t.Names, called.name) {
			continue
		} else if strings.Contains(name, ":") && findSnapshot(own, name) == nil {
			break
		}
		return t, nil
	}
	return templateInfo{}, notFound("template", name)
}

// partOfTemplate is there because a pattern for tags alone would conflict with that of
// aliases.
func (c templateRoutes) partOfTemplate(w http.ResponseWriter, r *keyedRequest) error {
	if r.PathValue("part") != "tags" {
		return c.unknown(w, r)
	}
	all, err := c.listTags(r)
	if err != nil {
		return err
	}
	return writeAnswer(r.Context(), w, http.StatusOK, all)
}

// defaultTemplates are the installation's, by their ids.
func (c templateRoutes) defaultTemplates(w http.ResponseWriter, r *keyedRequest) error {
	all, err := c.readyTemplates(r)
	if err != nil {
		return err
	}
	slices.SortFunc(all, func(a, b templateInfo) int { return cmp.Compare(a.TemplateID, b.TemplateID) })
	return writeAnswer(r.Context(), w, http.StatusOK, all)
}

func (c templateRoutes) showTemplate(w http.ResponseWriter, r *keyedRequest) error {
	t, err := c.findTemplate(r, r.PathValue("id"))
	if err != nil {
		return err
	}
	return writeAnswer(r.Context(), w, http.StatusOK, t)
}

// aliasOf is how clients ask whether a template is there.
func (c templateRoutes) aliasOf(w http.ResponseWriter, r *keyedRequest) error {
	t, err := c.findTemplate(r, r.PathValue("alias"))
	if err != nil {
		return err
	}
	return writeAnswer(r.Context(), w, http.StatusOK, map[string]any{"templateID": t.TemplateID, "public": t.Public})
}
