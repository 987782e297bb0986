package httpapi

import (
	"encoding/json"
	"net/http"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/template"
)

// templateRoutes are about templates.
type templateRoutes struct{ *desk }

func (s templateRoutes) listTemplates(w http.ResponseWriter, r *http.Request) error {
	all, err := s.cfg.Templates.List(r.Context())
	if err != nil {
		return err
	}
	views := []api.Template{}
	for _, t := range all {
		views = append(views, s.viewTemplate(t))
	}
	return writeJSON(w, r, http.StatusOK, views)
}

func (s templateRoutes) viewTemplate(t template.Template) api.Template {
	return api.Template{Name: t.Name, Digest: t.Digest, Created: t.Created, Bytes: t.Bytes, Outdated: s.cfg.Templates.Outdated(t)}
}

func (s templateRoutes) showTemplate(w http.ResponseWriter, r *http.Request) error {
	t, err := s.cfg.Templates.Get(r.Context(), r.PathValue("name"))
	if err != nil {
		return err
	}
	l, err := s.cfg.Templates.Ledger(t)
	if err != nil {
		return err
	}
	view := api.TemplateLedger{
		Template: s.viewTemplate(t), System: []api.TemplatePackage{}, Python: []api.TemplatePackage{}, Tools: []api.TemplateTool{},
	}
	for _, p := range l.System {
		view.System = append(view.System, api.TemplatePackage{Name: p.Name, Version: p.Version, Architecture: p.Architecture})
	}
	for _, p := range l.Python {
		view.Python = append(view.Python, api.TemplatePackage{Name: p.Name, Version: p.Version, Folder: p.Folder})
	}
	for _, p := range l.Tools {
		view.Tools = append(view.Tools, api.TemplateTool{
			Name: p.Name, Version: p.Version, Ecosystem: p.Ecosystem, Package: p.Package, File: p.File,
			SHA256: p.SHA256, SourceURL: p.Source, Run: p.Run, Record: p.Record,
		})
	}
	return writeJSON(w, r, http.StatusOK, view)
}

// buildTemplate streams the build's progress as JSON lines; the last one has
// Done or Error.
func (s templateRoutes) buildTemplate(w http.ResponseWriter, r *http.Request) error {
	w.Header().Set("Content-Type", "application/x-ndjson")
	out, flush := json.NewEncoder(w), http.NewResponseController(w)
	send := func(e api.TemplateEvent) {
		//nolint:errcheck,errchkjson // a client that went away cancels the request's context
		out.Encode(e)
		flush.Flush() //nolint:errcheck // as above
	}
	t, err := s.cfg.Templates.Build(r.Context(), r.PathValue("name"), func(p template.Progress) {
		send(api.TemplateEvent{Step: p.Step, Detail: p.Detail, Percent: p.Percent})
	})
	if err != nil {
		send(api.TemplateEvent{Error: s.errorInside(r, err, statusOf(err), whoseIs(r))})
		return errAnswered
	}
	s.cfg.Built(r.Context())
	done := s.viewTemplate(t)
	send(api.TemplateEvent{Done: &done})
	return nil
}

func (s templateRoutes) removeTemplate(w http.ResponseWriter, r *http.Request) error {
	if err := s.cfg.Templates.Remove(r.Context(), r.PathValue("name")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
