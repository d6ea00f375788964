// Package certtest makes certificates for tests, with an authority of their own.
package certtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Authority signs certificates.
type Authority struct {
	File string // its certificate in PEM

	t    testing.TB
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// Pair are the PEM files of a certificate and its key.
type Pair struct {
	Cert, Key string
}

// NewAuthority makes an authority whose files are below dir.
func NewAuthority(t testing.TB, dir string) *Authority {
	t.Helper()

	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)

	template := &x509.Certificate{
		SerialNumber: serial(t), Subject: pkix.Name{CommonName: "Berth's tests"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(365 * 24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}

	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)

	cert, err := x509.ParseCertificate(der)
	require.NoError(t, err)

	a := &Authority{t: t, dir: dir, cert: cert, key: key, File: filepath.Join(dir, "ca-"+cert.SerialNumber.Text(16)[:8]+".pem")}
	write(t, a.File, "CERTIFICATE", der)

	return a
}

// Sign makes a certificate of servers and clients for names and addresses,
// valid for life, in the files NAME.pem and NAME.key.
func (a *Authority) Sign(name string, life time.Duration, hosts ...string) Pair {
	a.t.Helper()

	return a.SignFrom(name, time.Now().Add(min(life, 0)-time.Hour), life, hosts...)
}

// SignFrom is Sign for a certificate that holds from a time on.
func (a *Authority) SignFrom(name string, from time.Time, life time.Duration, hosts ...string) Pair {
	a.t.Helper()

	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(a.t, err)

	template := &x509.Certificate{
		SerialNumber: serial(a.t), Subject: pkix.Name{CommonName: name},
		NotBefore: from, NotAfter: time.Now().Add(life),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}

	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}

	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	require.NoError(a.t, err)

	secret, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(a.t, err)

	pair := Pair{Cert: filepath.Join(a.dir, name+".pem"), Key: filepath.Join(a.dir, name+".key")}
	write(a.t, pair.Cert, "CERTIFICATE", der)
	write(a.t, pair.Key, "PRIVATE KEY", secret)

	return pair
}

// Pool trusts the authority alone.
func (a *Authority) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)

	return pool
}

func serial(t testing.TB) *big.Int {
	t.Helper()

	number, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	require.NoError(t, err)

	return number.SetBit(number, 119, 1)
}

// write renames, so that a reader sees the old file or the new one.
func write(t testing.TB, path, kind string, der []byte) {
	t.Helper()

	require.NoError(t, os.WriteFile(path+".new", pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
	require.NoError(t, os.Rename(path+".new", path))
}
