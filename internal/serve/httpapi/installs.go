package httpapi

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/records"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit/index"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// maxPasses bounds how many pages of the log one request of a token looks through
// for records of its own. How many it looked through must not tell how much others did, so
// that a page of a token's request is as large as one can be, whatever it asked for.
const maxPasses = 20

// installs answers with a page of the log's records about packages. A token gets
// those of its own sandboxes.
func (s runRoutes) installs(w http.ResponseWriter, r *http.Request) error {
	by, err := callerOf(r.Context())
	if err != nil {
		return err
	}
	if s.cfg.Audit.Index == nil {
		return errNotWired
	}
	filter, err := installFilter(r.URL.Query())
	if err != nil {
		return err
	}
	if !by.seesAll() {
		filter.From = s.positions.reveal(by.token.ID, filter.From)
	}
	size, page := filter.Limit, api.InstallPage{Installs: []api.Record{}}
	for range maxPasses {
		filter.Limit = size - len(page.Installs)
		if !by.seesAll() {
			filter.Limit = maxPage
		}
		last, more, full, err := s.someInstalls(r, by, filter, size, &page)
		if err != nil {
			return err
		}
		if !more {
			return writeJSON(w, r, http.StatusOK, page)
		}
		filter.From = last + 1
		if full {
			break
		}
	}
	if !by.seesAll() {
		filter.From = s.positions.conceal(by.token.ID, filter.From)
	}
	page.Next = strconv.FormatUint(filter.From, 10)
	return writeJSON(w, r, http.StatusOK, page)
}

// someInstalls adds to the page, until it has its size, what the filter selects and the
// caller sees, and tells which record was looked at last, and whether there are more. full: the
// page has its size, and there is another record for the next page. For a token that must be
// one of its own, or the page would tell that others have some.
func (s runRoutes) someInstalls(r *http.Request, by caller, filter index.Filter, size int, page *api.InstallPage) (last uint64, more, full bool, err error) {
	var seqs []uint64
	err = s.cfg.Audit.Index.View(r.Context(), func(v *index.View) (err error) {
		if !by.seesAll() && filter.From > v.Next {
			return fault.Invalid("after=%s is the next of no page that this token was given; ask without it for all records", r.URL.Query().Get("after"))
		}
		seqs, more, err = v.Select(r.Context(), filter)
		return err
	})
	if err != nil || len(seqs) == 0 {
		return 0, false, false, err
	}
	for record, err := range s.cfg.Log.Records(r.Context(), audit.Filter{Seqs: seqs}) {
		if err != nil {
			return 0, false, false, err
		}
		if !by.seesAll() {
			owns, err := s.ownsSandbox(r.Context(), by.token.ID, record.Sandbox)
			if err != nil {
				return 0, false, false, err
			}
			if !owns {
				continue
			}
			if len(page.Installs) == size {
				return record.Seq - 1, true, true, nil
			}
			record = s.positions.concealIn(by.token.ID, record)
		}
		text, err := json.Marshal(record)
		if err != nil {
			return 0, false, false, err
		}
		page.Installs = append(page.Installs, text)
	}
	return seqs[len(seqs)-1], more, by.seesAll() && len(page.Installs) == size, nil
}

// concealIn returns a record as a token is told of it: with positions in place of its number and of
// those of other records.
func (p positions) concealIn(tokenID string, r audit.Record) audit.Record {
	r.Seq = p.conceal(tokenID, r.Seq)
	r.Detail = maps.Clone(r.Detail)
	for _, key := range []string{records.DetailBegan, records.DetailServed} {
		if number, err := strconv.ParseUint(r.Detail[key], 10, 64); err == nil {
			r.Detail[key] = strconv.FormatUint(p.conceal(tokenID, number), 10)
		}
	}
	return r
}

// installOutcomes are those of records about packages but for what was only shown:
// pages and metadata are many, and are asked for by their outcome.
func installOutcomes() []string {
	return []string{
		string(audit.Served), string(audit.Aborted), string(audit.Built), string(audit.Installed), string(audit.Blocked), string(audit.Withheld), string(audit.Pending),
		string(audit.WouldDeny), string(audit.WouldHold), string(audit.Failed), string(audit.Exceeded), string(audit.Alarm), string(audit.Planned),
	}
}

// installFilter reads the query of /v1/installs.
func installFilter(q url.Values) (index.Filter, error) {
	fields := []string{"run", "sandbox", "user", "token", "ecosystem", "package", "outcome", "policy"}
	if err := checkQueryKeys(q, append(fields, "since", "until", "limit", "after")...); err != nil {
		return index.Filter{}, err
	}
	filter := index.Filter{Where: map[string][]string{"kind": {string(audit.KindPackage)}}}
	for _, field := range fields {
		if len(q[field]) > 0 {
			filter.Where[field] = q[field]
		}
	}
	if len(filter.Where["outcome"]) == 0 {
		filter.Where["outcome"] = installOutcomes()
	}
	var err error
	for key, to := range map[string]*time.Time{"since": &filter.Since, "until": &filter.Until} {
		if text := q.Get(key); text != "" {
			if *to, err = time.Parse(time.RFC3339, text); err != nil {
				return filter, fault.Invalid("%s=%.40q is no time such as 2026-11-21T10:00:00Z", key, text)
			}
		}
	}
	if filter.From, err = parseNumber(q.Get("after")); err != nil {
		return filter, err
	}
	filter.Limit, err = pageSize(q)
	return filter, err
}
