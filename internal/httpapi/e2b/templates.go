package e2b

import (
	"net/http"
	"slices"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/template"
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
}

// offered are the templates that clients may ask for. The one that shows the
// host's own programs is not among them, unless it is the default.
func (c *Control) offered() []template.Known {
	return slices.DeleteFunc(slices.Clone(c.cfg.Templates.Known()), func(k template.Known) bool {
		return k.Name == template.NameHost && c.cfg.DefaultTemplate != template.NameHost
	})
}

// isTemplate reports whether a name is a template's and not a snapshot's.
func (c *Control) isTemplate(name string) bool {
	return slices.Contains(baseTemplates(), name) ||
		slices.ContainsFunc(c.cfg.Templates.Known(), func(k template.Known) bool { return k.Name == name })
}

// ready are the offered templates that are built.
func (c *Control) ready(r *client) ([]templateInfo, error) {
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
		if k.Name == c.cfg.DefaultTemplate {
			names = append(names, baseTemplates()...)
		}
		all = append(all, templateInfo{
			TemplateID: k.Name, BuildID: k.Name, Public: true, Aliases: names, Names: names, CreatedAt: stamp(made), UpdatedAt: stamp(made),
			BuildCount: 1, BuildStatus: status, EnvdVersion: EnvdVersion,
		})
	}
	return all, nil
}

func (c *Control) listTemplates(w http.ResponseWriter, r *client) error {
	all, err := c.ready(r)
	if err != nil {
		return err
	}
	writeObject(w, http.StatusOK, all)
	return nil
}

// named finds a template by one of its names.
func (c *Control) named(r *client, name string) (templateInfo, error) {
	all, err := c.ready(r)
	if err != nil {
		return templateInfo{}, err
	}
	for _, t := range all {
		if slices.Contains(t.Names, nameOf(name).kept()) {
			return t, nil
		}
	}
	return templateInfo{}, notFound("template", name)
}

// tagInfo is a tag of a template or of a snapshot's name. Its build is what it leads to.
type tagInfo struct {
	Tag       string `json:"tag"`
	BuildID   string `json:"buildID"`
	CreatedAt stamp  `json:"createdAt"`
}

// partOfTemplate is there because a pattern for tags alone would conflict with that of
// aliases.
func (c *Control) partOfTemplate(w http.ResponseWriter, r *client) error {
	if r.PathValue("part") != "tags" {
		return c.unknown(w, r)
	}
	return c.tags(w, r)
}

// tags are those of a template, which has one, or of a snapshot's name.
func (c *Control) tags(w http.ResponseWriter, r *client) error {
	ref := r.PathValue("id")
	of, err := c.snapshotOf(r.Context(), r.token, ref)
	if err != nil {
		return err
	}
	if of == nil {
		t, err := c.named(r, ref)
		if err != nil {
			return err
		}
		writeObject(w, http.StatusOK, []tagInfo{{Tag: defaultTag, BuildID: t.BuildID, CreatedAt: t.CreatedAt}})
		return nil
	}
	own, err := c.snapshots(r.Context(), r.token)
	if err != nil {
		return err
	}
	all := []tagInfo{}
	for _, s := range own {
		if s.Name != "" && nameOf(s.Name).name == nameOf(of.Name).name {
			all = append(all, tagInfo{Tag: nameOf(s.Name).tagName(), BuildID: s.ID, CreatedAt: stamp(s.Created)})
		}
	}
	writeObject(w, http.StatusOK, all)
	return nil
}

func (c *Control) showTemplate(w http.ResponseWriter, r *client) error {
	t, err := c.named(r, r.PathValue("id"))
	if err != nil {
		return err
	}
	writeObject(w, http.StatusOK, t)
	return nil
}

// aliasOf is how clients ask whether a template is there.
func (c *Control) aliasOf(w http.ResponseWriter, r *client) error {
	t, err := c.named(r, r.PathValue("alias"))
	if err != nil {
		return err
	}
	writeObject(w, http.StatusOK, map[string]any{"templateID": t.TemplateID, "public": t.Public})
	return nil
}
