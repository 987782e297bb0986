package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// The names under which sandboxes know the bench's registries.
const (
	indexHost = "index.example"
	npmHost   = "npm.example"
	indexBase = "https://" + indexHost + "/"
	npmBase   = "https://" + npmHost + "/"
)

// registry is the upstream: an honest one, on loopback, over TLS; npm's also
// without, for a peer that has no better.
type registry struct {
	server *httptest.Server
	plain  *httptest.Server
	npm    *npmRegistry
	ca     []byte
	big    wheel
}

// Sizes of what the registry has beside the ten packages.
const (
	manyVersions = 3000
	bigBytes     = 100 << 20
)

func startRegistry(wheels []wheel, npm, uv project) (*registry, error) {
	ca, certificate, err := certify(indexHost, npmHost, farHost, endedHost, directHost)
	if err != nil {
		return nil, err
	}
	big, err := bigWheel(bigBytes)
	if err != nil {
		return nil, err
	}
	r := &registry{ca: ca, big: big}
	mux := http.NewServeMux()
	pages := map[string][]indexFile{"many": manyFiles()}
	for _, w := range append([]wheel{big, smallWheel()}, wheels...) {
		pages[w.project] = []indexFile{w.listed()}
		mux.HandleFunc("GET /files/"+w.file, func(rw http.ResponseWriter, _ *http.Request) {
			_, _ = rw.Write(w.bytes) // the gateway says if it got too little
		})
	}
	mux.HandleFunc("GET /simple/{project}/", func(rw http.ResponseWriter, r *http.Request) {
		project := r.PathValue("project")
		answerPage(rw, project, append(slices.Clip(pages[project]), uv.files(project)...))
	})
	mux.HandleFunc("GET "+eventsPath, answerEvents)
	mux.Handle("GET /files/", http.FileServer(http.Dir(uv.dir)))
	r.npm = newNpmRegistry(npm.dir, npmBase)
	mux.Handle("GET "+npmHost+"/", r.npm)
	r.server = httptest.NewUnstartedServer(mux)
	r.server.TLS = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate}}
	r.server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError) // the daemon's end cuts connections
	r.server.StartTLS()
	r.plain = httptest.NewUnstartedServer(nil)
	r.plain.Config.Handler = newNpmRegistry(npm.dir, "http://"+r.plain.Listener.Addr().String()+"/")
	r.plain.Start()
	return r, nil
}

func (r *registry) close() error {
	for _, s := range []*httptest.Server{r.server, r.plain} {
		s.CloseClientConnections()
		s.Close()
	}
	return nil
}

// configure has an installation use this registry and no other, and the Docker daemon at a
// socket, whether or not there is one.
func (r *registry) configure(state, dir, docker string) error {
	bundle := filepath.Join(dir, "registry-ca.pem")
	if err := os.WriteFile(bundle, r.ca, 0o600); err != nil {
		return err
	}
	var text strings.Builder
	fmt.Fprintf(&text, "default_template: debian\nprobe_projects: [small]\ndocker: { host: %q }\nupstreams:\n", docker)
	for ecosystem, index := range map[string]string{"python": indexHost + "/simple/", "node": npmHost + "/"} {
		fmt.Fprintf(&text, "  - ecosystem: %s\n    index: https://%s\n    ca_file: %s\n    address: %s\n", ecosystem, index, bundle, r.server.Listener.Addr())
	}
	configureHosts(&text, r.server.Listener.Addr().String(), bundle)
	return os.WriteFile(filepath.Join(state, "config.yaml"), []byte(text.String()), 0o600)
}

// indexFile is a file on a page, in the JSON form of the simple index.
type indexFile struct {
	Filename       string            `json:"filename"`
	URL            string            `json:"url"`
	Hashes         map[string]string `json:"hashes"`
	RequiresPython string            `json:"requires-python,omitempty"`
	Size           int               `json:"size,omitzero"`
	UploadTime     time.Time         `json:"upload-time,omitzero"`
	Yanked         bool              `json:"yanked"`
}

func (w wheel) listed() indexFile {
	return indexFile{
		Filename: w.file, URL: "https://" + indexHost + "/files/" + w.file, Hashes: map[string]string{"sha256": w.sha256},
		RequiresPython: ">=3.8", Size: len(w.bytes), UploadTime: time.Date(2025, 1, 1, 12, 0, 0, 0, time.UTC),
	}
}

// answerPage sends a project's page.
func answerPage(w http.ResponseWriter, project string, files []indexFile) {
	body, err := json.Marshal(map[string]any{"meta": map[string]string{"api-version": "1.1"}, "name": project, "files": files})
	if err != nil || len(files) == 0 {
		http.Error(w, "there is no such project", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", jsonIndex)
	_, _ = w.Write(body) // the gateway says if it got too little
}

// eventsPause is between the two events of a stream.
const eventsPause = 5 * time.Millisecond

// answerEvents sends an event at once, and another one later.
func answerEvents(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	flusher := http.NewResponseController(w)
	for range 2 {
		_, _ = io.WriteString(w, "data: something\n\n") // the client says if it got too little
		_ = flusher.Flush()
		time.Sleep(eventsPause)
	}
}

// manyFiles lists 3,000 versions, 0.0.0 to 29.9.9, a wheel each.
func manyFiles() []indexFile {
	files := make([]indexFile, 0, manyVersions)
	for i := range manyVersions {
		sum := sha256.Sum256([]byte{byte(i), byte(i >> 8)})
		w := wheel{file: fmt.Sprintf("many-%d.%d.%d-py3-none-any.whl", i/100, i/10%10, i%10), sha256: hex.EncodeToString(sum[:])}
		f := w.listed()
		f.Size = 10000 + i
		f.UploadTime = f.UploadTime.Add(-time.Duration(i) * time.Hour)
		files = append(files, f)
	}
	return files
}

// certify makes an authority and a certificate for names, valid for a day.
func certify(names ...string) (ca []byte, leaf tls.Certificate, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, leaf, err
	}
	parent := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "bench CA"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	own, err1 := x509.CreateCertificate(rand.Reader, parent, parent, &key.PublicKey, key)
	leafKey, err2 := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err := errors.Join(err1, err2); err != nil {
		return nil, leaf, err
	}
	child := &x509.Certificate{
		SerialNumber: big.NewInt(2), NotBefore: parent.NotBefore, NotAfter: parent.NotAfter, DNSNames: names,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, child, parent, &leafKey.PublicKey, key)
	if err != nil {
		return nil, leaf, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: own}), tls.Certificate{Certificate: [][]byte{der}, PrivateKey: leafKey}, nil
}
