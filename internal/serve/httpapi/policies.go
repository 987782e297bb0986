package httpapi

import (
	"context"
	"net/http"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/decide/namedpolicy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/backend"
)

// maxPolicy bounds a policy document; real ones have a few kilobytes.
const maxPolicy = 1 << 20

// policyRoutes are about named policies.
type policyRoutes struct{ *desk }

func (s policyRoutes) listPolicies(w http.ResponseWriter, r *http.Request) error {
	by, err := callerOf(r.Context())
	if err != nil {
		return err
	}
	if s.cfg.Policies == nil {
		return errNotWired
	}
	all, err := s.cfg.Policies.List()
	if err != nil {
		return err
	}
	views := []api.NamedPolicy{}
	for _, p := range all {
		if by.seesAll() || by.token.May(p.Name) {
			v := viewPolicy(p)
			v.Document, v.Source = nil, by.sourceName(v.Source)
			views = append(views, v)
		}
	}
	return writeJSON(w, r, http.StatusOK, views)
}

func (s policyRoutes) getPolicy(w http.ResponseWriter, r *http.Request) error {
	by, err := callerOf(r.Context())
	if err != nil {
		return err
	}
	if s.cfg.Policies == nil {
		return errNotWired
	}
	name := r.PathValue("name")
	if !by.seesAll() && !by.token.May(name) {
		return fault.New(fault.ErrNotFound, "there is no policy %.60q", name)
	}
	p, err := s.cfg.Policies.Get(name)
	if err != nil {
		return err
	}
	v := viewPolicy(p)
	v.Source = by.sourceName(v.Source)
	return writeJSON(w, r, http.StatusOK, v)
}

func (s policyRoutes) putPolicy(w http.ResponseWriter, r *http.Request) error {
	by, err := callerOf(r.Context())
	if err != nil {
		return err
	}
	if s.cfg.Policies == nil {
		return errNotWired
	}
	var body api.PutPolicy
	if err := readJSON(r, &body); err != nil {
		return err
	}
	if len(body.Document) > maxPolicy {
		return fault.Invalid("the policy has %d bytes; the limit is %d", len(body.Document), maxPolicy)
	}
	if err := s.mayPut(r.Context(), body, by); err != nil {
		return err
	}
	name := r.PathValue("name")
	reason := "A named policy is put."
	if body.ApplyToLive {
		reason = "A named policy is put, and narrows the live runs of its name."
	}
	if err := backend.Promise(r.Context(), 1, body); err != nil {
		return err
	}
	undo, err := s.announce(r.Context(), by, reason, map[string]string{"event": "policy_put", "name": name})
	if err != nil {
		return err
	}
	p, err := s.cfg.Policies.Put(name, body.Source, body.Document)
	if err != nil {
		return undo(err)
	}
	applied, err := s.cfg.Sandboxes.PolicyPut(r.Context(), p.Policy, p.Path, p.Text, body.ApplyToLive)
	if err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "the policy %s is in force for new sandboxes, but only %d of %d live ones are narrowed by it; put it again", name, applied.Narrowed, applied.Live)
	}
	v := viewPolicy(p)
	v.Live, v.Narrowed = applied.Live, applied.Narrowed
	return writeJSON(w, r, http.StatusOK, v)
}

// mayPut refuses a document that the caller may not bring.
func (s policyRoutes) mayPut(ctx context.Context, body api.PutPolicy, by caller) error {
	if by.token == nil {
		return s.checkSeen(ctx, by, "policy", body.Source, body.Document)
	}
	parsed, err := namedpolicy.Parse(orName(body.Source, "the given policy"), body.Document)
	if err != nil {
		return err
	}
	return mayMount(parsed, by)
}

func (s policyRoutes) removePolicy(w http.ResponseWriter, r *http.Request) error {
	by, err := callerOf(r.Context())
	if err != nil {
		return err
	}
	if s.cfg.Policies == nil {
		return errNotWired
	}
	name := r.PathValue("name")
	if _, err := s.cfg.Policies.Get(name); err != nil {
		return err
	}
	undo, err := s.announce(r.Context(), by, "A named policy is removed.", map[string]string{"event": "policy_removed", "name": name})
	if err != nil {
		return err
	}
	if err := s.cfg.Policies.Remove(name); err != nil {
		return undo(err)
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func viewPolicy(p *namedpolicy.Named) api.NamedPolicy {
	return api.NamedPolicy{Name: p.Name, Digest: p.Policy.Digest(), Source: p.Path, Changed: p.Changed, Document: p.Text}
}
