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
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"time"
)

// indexHost is the name under which sandboxes know the bench's registry.
const indexHost = "index.example"

// registry is the upstream: an honest one, on loopback, over TLS.
type registry struct {
	server *httptest.Server
	ca     []byte
	big    wheel
}

// Sizes of what the registry has beside the ten packages.
const (
	manyVersions = 3000
	bigBytes     = 100 << 20
)

func startRegistry(wheels []wheel) (*registry, error) {
	ca, certificate, err := certify(indexHost)
	if err != nil {
		return nil, err
	}
	big, err := bigWheel(bigBytes)
	if err != nil {
		return nil, err
	}
	r := &registry{ca: ca, big: big}
	mux := http.NewServeMux()
	for _, w := range append([]wheel{big, smallWheel()}, wheels...) {
		mux.Handle("GET /simple/"+w.project+"/", page(w.project, []indexFile{w.listed()}))
		mux.HandleFunc("GET /files/"+w.file, func(rw http.ResponseWriter, _ *http.Request) {
			_, _ = rw.Write(w.bytes) // the gateway says if it got too little
		})
	}
	mux.Handle("GET /simple/many/", page("many", manyFiles()))
	r.server = httptest.NewUnstartedServer(mux)
	r.server.TLS = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate}}
	r.server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError) // the daemon's end cuts connections
	r.server.StartTLS()
	return r, nil
}

func (r *registry) close() error {
	r.server.CloseClientConnections()
	r.server.Close()
	return nil
}

// configure has an installation use this registry and no other.
func (r *registry) configure(state, dir string) error {
	bundle := filepath.Join(dir, "registry-ca.pem")
	if err := os.WriteFile(bundle, r.ca, 0o600); err != nil {
		return err
	}
	text := fmt.Sprintf("default_template: debian\nprobe_projects: [small]\nupstreams:\n  - ecosystem: python\n    index: https://%s/simple/\n    ca_file: %s\n    address: %s\n",
		indexHost, bundle, r.server.Listener.Addr())
	return os.WriteFile(filepath.Join(state, "config.yaml"), []byte(text), 0o600)
}

// indexFile is a file on a page, in the JSON form of the simple index.
type indexFile struct {
	Filename       string            `json:"filename"`
	URL            string            `json:"url"`
	Hashes         map[string]string `json:"hashes"`
	RequiresPython string            `json:"requires-python,omitempty"`
	Size           int               `json:"size"`
	UploadTime     time.Time         `json:"upload-time"`
	Yanked         bool              `json:"yanked"`
}

func (w wheel) listed() indexFile {
	return indexFile{
		Filename: w.file, URL: "https://" + indexHost + "/files/" + w.file, Hashes: map[string]string{"sha256": w.sha256},
		RequiresPython: ">=3.8", Size: len(w.bytes), UploadTime: time.Date(2025, 1, 1, 12, 0, 0, 0, time.UTC),
	}
}

// page answers with a project's page.
func page(project string, files []indexFile) http.Handler {
	body, err := json.Marshal(map[string]any{"meta": map[string]string{"api-version": "1.1"}, "name": project, "files": files})
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/vnd.pypi.simple.v1+json")
		_, _ = w.Write(body) // the gateway says if it got too little
	})
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

// certify makes an authority and a certificate for a name, valid for a day.
func certify(name string) (ca []byte, leaf tls.Certificate, err error) {
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
		SerialNumber: big.NewInt(2), NotBefore: parent.NotBefore, NotAfter: parent.NotAfter, DNSNames: []string{name},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, child, parent, &leafKey.PublicKey, key)
	if err != nil {
		return nil, leaf, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: own}), tls.Certificate{Certificate: [][]byte{der}, PrivateKey: leafKey}, nil
}
