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
		if slices.Contains(t.Names, name) {
			return t, nil
		}
	}
	return templateInfo{}, notFound("template", name)
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
