#!/bin/sh
# Makes the certificates of http.test.ts anew. They are valid for a hundred years and open nothing.
set -eu
cd "$(dirname "$0")"
key() { openssl ecparam -name prime256v1 -genkey -noout -out "$1.key"; }
authority() {
  key "$1"
  openssl req -x509 -new -key "$1.key" -days 36500 -subj "/CN=$1" -out "$1.crt"
}
signed() { # name, authority, subject alternative names
  key "$1"
  printf 'subjectAltName=%s\n' "$3" > extensions
  openssl req -new -key "$1.key" -subj "/CN=$1" |
    openssl x509 -req -CA "$2.crt" -CAkey "$2.key" -days 36500 -extfile extensions -out "$1.crt"
  rm extensions
}
authority authority
authority other-authority
signed server authority 'IP:127.0.0.1,DNS:localhost'
signed renamed-server authority 'DNS:kubernetes.test'
signed alice authority 'DNS:alice'
signed bob authority 'DNS:bob'
rm -f authority.key other-authority.key other-authority.srl authority.srl
