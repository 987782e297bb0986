package gateway_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	secretexchange "github.com/cofferdam-dev/cofferdam/internal/decide/secret/exchange"
	"github.com/cofferdam-dev/cofferdam/internal/packages/cache"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/golang/golangtest"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/npm/npmtest"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/pypi/pypitest"
	"github.com/cofferdam-dev/cofferdam/internal/packages/gateway"
	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream"
	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream/liar"
)

const registryPassword = "correct/horse+battery=staple"

// registryRoute is one question of a client, and what a registry answers it with.
type registryRoute struct {
	ask  string // of the client
	at   string // of the registry: host and path
	mime string
	body []byte
	// says is the body with a text of the registry's in a place that a client gets to see.
	says func(text string) []byte
	// shows tells that the text comes to the client from there, if it is none that is looked for.
	shows bool
}

// spoken is a gateway's bench with a credential, which has asked for nothing yet, and its routes.
type spoken struct {
	*bench
	routes map[string]registryRoute
}

// protocols are all that the gateway speaks.
func protocols(t *testing.T) map[string]func(t *testing.T) spoken {
	t.Helper()
	withKey := func(t *testing.T, b *bench) {
		t.Helper()
		u := &b.cfg.Upstreams[0]
		u.Username, u.Password = "deploy", registryPassword
		if err := b.gateway.Close(); err != nil {
			t.Fatal(err)
		}
		b.cfg.Limits.Fresh, b.cfg.Limits.Stale, b.cfg.Limits.Upstream.Attempts, b.cfg.CacheDir = 1, 1, 1, t.TempDir()
		b.start()
	}
	behind := func(body []byte, format string) func(string) []byte {
		return func(text string) []byte { return append(bytes.Clone(body), fmt.Sprintf(format, text)...) }
	}
	return map[string]func(t *testing.T) spoken{
		"PyPI": func(t *testing.T) spoken {
			t.Helper()
			b := newBench(t, nil)
			foo := pypitest.Wheel(t, "foo", "1.0")
			b.publish(foo)
			foo.URL = b.registry.URL(filesHost, "/p/"+foo.File)
			page := string(pypitest.Page(t, "foo", foo))
			withKey(t, b)
			return spoken{b, map[string]registryRoute{
				"page": {"/simple/foo/", indexHost + "/simple/foo/", pypitest.TypeJSON, []byte(page), func(text string) []byte {
					name := `foo-1.0-1you_said_` + text + `-py3-none-any.whl`
					more := `{"filename": "` + name + `", "url": "` + b.registry.URL(filesHost, "/p/"+name) + `", "hashes": {"sha256": "` + foo.Digest() + `"}, "yanked": "` + text + `"}, {"filename":`
					return []byte(strings.Replace(page, `{"filename":`, more, 1))
				}, true},
				"file":       {"/p/" + foo.File, filesHost + "/p/" + foo.File, "application/zip", foo.Bytes, behind(foo.Bytes, "%s"), false},
				"attachment": {"/p/" + foo.File + ".metadata", filesHost + "/p/" + foo.File + ".metadata", "text/plain", foo.Metadata, behind(foo.Metadata, "\n%s"), false},
			}}
		},
		"npm": func(t *testing.T) spoken {
			t.Helper()
			b := newNodeBench(t, nil)
			foo := npmtest.Pack(t, "foo", "1.0.0", nil)
			b.nodePublish(indexHost, nil, foo)
			foo.URL = b.registry.URL(indexHost, foo.Path())
			page := string(npmtest.Packument(t, "foo", nil, foo))
			withKey(t, b)
			return spoken{b, map[string]registryRoute{
				"page": {"/foo", nodePage(indexHost, "foo"), npmtest.Type, []byte(page), func(text string) []byte {
					return []byte(strings.Replace(page, `"version":`, `"deprecated": "you said `+text+`", "version":`, 1))
				}, true},
				"file": {foo.Path(), indexHost + foo.Path(), "application/octet-stream", foo.Bytes, behind(foo.Bytes, "%s"), false},
			}}
		},
		"Go": func(t *testing.T) spoken {
			t.Helper()
			m := golangtest.New(t, "corp.example/foo", "v1.0.0")
			b, log := newGoBench(t, m)
			withKey(t, b)
			all := spoken{b, map[string]registryRoute{}}
			for path, a := range golangtest.Proxy(t, m) {
				says := behind(a.Body, "\n// %s\n")
				if strings.HasSuffix(path, ".info") {
					says = func(text string) []byte {
						return bytes.Replace(a.Body, []byte("{"), []byte(`{"Origin": {"URL": "https://corp.example/`+text+`"}, `), 1)
					}
				}
				all.routes[path] = registryRoute{"/" + path, indexHost + "/" + path, a.ContentType, a.Body, says, false}
			}
			path := "lookup/" + m.Escaped(t, "")
			record := log.Answers()[path]
			all.routes["log"] = registryRoute{logPath + path, indexHost + logPath + path, record.ContentType, record.Body, behind(record.Body, "%s\n"), false}
			return all
		},
	}
}

// exactRoute tells whether a route's bytes are verified, or relayed to who verifies them.
func exactRoute(name string) bool {
	return name == "log" || strings.HasSuffix(name, ".mod") || strings.HasSuffix(name, ".zip") || strings.HasSuffix(name, ".info")
}

// everything is what the door was told, and what was logged.
func (s spoken) everything(log *lockedBuffer) string {
	d := s.door
	d.mu.Lock()
	defer d.mu.Unlock()
	return fmt.Sprintf("%+v %+v %+v %+v %+v %+v %+v %s", d.asked, d.shows, d.failures, d.served, d.asks, d.log, d.edges, log.String())
}

// TestNoRegistryGivesItsCredentialToAGuest: of each protocol, wherever a registry says what the gateway was to
// show it, the guest, the records and the log have nothing of it. The controls: the honest answer comes as
// before, and another text in the same place of a page comes to the client.
func TestNoRegistryGivesItsCredentialToAGuest(t *testing.T) {
	found := secretexchange.Finder(registryPassword)
	basic := base64.StdEncoding.EncodeToString([]byte("deploy:" + registryPassword))
	with := func(r registryRoute, status int, header http.Header, body []byte) liar.Reply {
		h := header.Clone()
		if h.Get("Content-Type") == "" {
			h.Set("Content-Type", r.mime)
		}
		return liar.With(status, h, body)
	}
	places := map[string]func(r registryRoute, text string) liar.Reply{
		"body":    func(r registryRoute, text string) liar.Reply { return with(r, 200, http.Header{}, r.says(text)) },
		"instead": func(r registryRoute, text string) liar.Reply { return with(r, 200, http.Header{}, []byte(text)) },
		"field": func(r registryRoute, text string) liar.Reply {
			return with(r, 200, http.Header{"X-You": {text}}, r.body)
		},
		"ETag": func(r registryRoute, text string) liar.Reply {
			return with(r, 200, http.Header{"Etag": {`"` + text + `"`}}, r.body)
		},
		"media type": func(r registryRoute, text string) liar.Reply {
			return with(r, 200, http.Header{"Content-Type": {"text/" + text}}, r.body)
		},
		"error": func(r registryRoute, text string) liar.Reply {
			return with(r, 403, http.Header{"X-You": {text}}, []byte(text))
		},
		"failure": func(r registryRoute, text string) liar.Reply {
			return with(r, 500, http.Header{"X-You": {text}}, []byte(text))
		},
		"redirect": func(_ registryRoute, text string) liar.Reply {
			return liar.Redirect("/elsewhere?you=" + url.QueryEscape(text))
		},
	}
	for protocol, begin := range protocols(t) {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			for name := range begin(t).routes {
				t.Run(name, func(t *testing.T) {
					for place, reply := range places {
						s := begin(t)
						log := &lockedBuffer{}
						s.cfg.Log = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
						r := s.routes[name]
						s.registry.Script(indexHost+"/elsewhere", liar.Body(r.mime, r.body))
						s.registry.Script(filesHost+"/elsewhere", liar.Body(r.mime, r.body))
						for writing, text := range map[string]string{"plain": registryPassword, "basic": basic, "URL": url.QueryEscape(registryPassword)} {
							s.registry.Script(r.at, reply(r, text))
							s.cfg.CacheDir = t.TempDir() // an honest file is kept
							s.restart()
							asked, told := s.registry.Count(r.at), strings.Count(s.everything(log), "has the credential in it")
							for _, header := range [][]string{nil, {"Accept", "*/*"}} {
								a := s.get(r.ask, header...)
								if all := fmt.Sprint(a.Status, a.Header, a.body); found([]byte(all)) {
									t.Fatalf("%s, %s: the guest gets %.500s", place, writing, all)
								}
							}
							says := s.everything(log)
							if found([]byte(says)) {
								t.Fatalf("%s, %s: it is on record: %.500s", place, writing, says)
							}
							if place == "body" && exactRoute(name) && strings.Count(says, "has the credential in it") == told {
								t.Fatalf("%s: nobody is told why: %.500s", writing, says)
							}
							if s.registry.Count(r.at) == asked {
								t.Fatalf("%s, %s: nobody asked for %s", place, writing, r.at)
							}
						}
					}
					s := begin(t)
					r := s.routes[name]
					if a := s.get(r.ask); a.StatusCode != http.StatusOK {
						t.Errorf("the control: %s", status(a))
					}
					if r.shows {
						s.registry.Script(r.at, liar.Body(r.mime, r.says("anothertextofit")))
						if a := s.get(r.ask, "Accept", r.mime); a.StatusCode != http.StatusOK || !strings.Contains(a.body, "anothertextofit") {
							t.Errorf("the control: %s", status(a))
						}
					}
				})
			}
		})
	}
}

// TestARegistryKnowsItsNeighboursCredential: of two ecosystems at one host, a page of the one that was shown nothing
// says what the other was shown.
func TestARegistryKnowsItsNeighboursCredential(t *testing.T) {
	b := newBench(t, func(c *gateway.Config) {
		python := c.Upstreams[0]
		c.Upstreams = append(c.Upstreams, upstream.Config{Ecosystem: pkgref.Node, Index: strings.Replace(python.Index, "/simple/", "/npm/", 1), CAPEM: python.CAPEM, Token: "atokenoftheneighbours"})
		c.Limits.Fresh, c.Limits.Stale = 1, 1
	})
	for text, comes := range map[string]bool{"atokenoftheneighbours": false, "anothertextofthis": true} {
		foo := pypitest.Wheel(t, "foo", "1.0")
		foo.File = "foo-1.0-1" + text + "-py3-none-any.whl"
		b.publish(foo)
		if a := b.get("/simple/foo/", "Accept", pypitest.TypeJSON); strings.Contains(a.body, text) != comes {
			t.Errorf("%s: %s", text, status(a))
		}
	}
}

// TestAPageThatWasKeptBeforeAnswersWereLookedThrough is fetched again: it may have the credential in it, and its
// upstream would only confirm it. The control is the page before there is a credential.
func TestAPageThatWasKeptBeforeAnswersWereLookedThrough(t *testing.T) {
	const before = 2 // the format of what was kept then
	b := newBench(t, nil)
	foo := pypitest.Wheel(t, "foo", "1.0")
	foo.File = "foo-1.0-1" + "atokenofthegateway" + "-py3-none-any.whl"
	b.publish(foo)
	if a := b.get("/simple/foo/", "Accept", pypitest.TypeJSON); !strings.Contains(a.body, "atokenofthegateway") {
		t.Fatalf("the control: %s %s", status(a), a.body)
	}
	must(t, b.gateway.Close())
	s, err := cache.Open(b.cfg.CacheDir, cache.Limits{Reserve: 1})
	must(t, err)
	k := cache.PageKey{Ecosystem: string(pkgref.Python), Upstream: b.cfg.Upstreams[0].Index, Project: "foo"}
	var index, rows bytes.Buffer
	p, err := s.GetPage(k, func(from io.Reader) error { _, err := io.Copy(&index, from); return err })
	must(t, err)
	r, err := p.Rows.Open()
	must(t, err)
	_, err = io.Copy(&rows, io.NewSectionReader(r, 0, p.Rows.Size()))
	must(t, errors.Join(err, r.Close()))
	p.Format = before
	w := s.CreatePage()
	defer w.Close()
	_, err = w.Append(rows.Bytes())
	must(t, err)
	_, err = w.Commit(k, p, func(to io.Writer) error { _, err := index.WriteTo(to); return err })
	must(t, err)
	b.cfg.Upstreams[0].Token = "atokenofthegateway"
	b.start()
	if a := b.get("/simple/foo/", "Accept", pypitest.TypeJSON); a.StatusCode != http.StatusOK || strings.Contains(a.body, "atokenofthegateway") {
		t.Errorf("%s: %s", status(a), a.body)
	}
}
