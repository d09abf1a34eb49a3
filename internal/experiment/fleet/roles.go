package fleet

import (
	"fmt"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// hubAccount has the stores of the fleet, and the coordinators.
const hubAccount = "FIT"

// rights are the subjects of the hub's account that a member may send to and hear.
type rights struct{ send, hear []string }

// rightsOf returns the rights of a role, for the member with a public key; those of the key * are
// the rights of all.
//
// Workers and observers may not make consumers: a consumer delivers to any subject.
func rightsOf(role, key string) rights {
	reads := func(streams ...string) []string {
		list := []string{"$JS.API.INFO"} // without it a server answers all of $JS.API in the name of the key's account
		for _, name := range streams {
			get := "$JS.API.DIRECT.GET." + name
			list = append(list, "$JS.API.STREAM.INFO."+name, get, get+".>")
		}
		return list
	}
	switch role {
	case RoleCoordinator:
		return rights{
			send: []string{
				"$JS.API.>", "$JS.ACK.>", "$JS.FC.>", "$KV." + fleetBucket + ".>",
				"$KV." + workersBucket + "." + livesPrefix + "*", "$O." + treesBucket + ".>", "fit.work.>",
				cancelSubject("*"), doneSubject("*", markToken, markToken),
			},
			hear: []string{inboxPrefix(key) + ".>", eventSubject("*", "*")},
		}
	case RoleWorker:
		return rights{
			send: append(reads("KV_"+fleetBucket, "KV_"+workersBucket, "OBJ_"+treesBucket),
				"$JS.API.CONSUMER.INFO.*."+consumerName, takeSubject,
				"$JS.ACK.*."+consumerName+".>", "$KV."+workersBucket+"."+key+".*",
				doneSubject("*", key, "*"), fileSubject("*", key, "*"), eventSubject("*", key)),
			hear: []string{subjectPrefix + ">", cancelSubject("*")},
		}
	default:
		return rights{
			send: append(reads("KV_"+fleetBucket, "KV_"+workersBucket), "$JS.API.CONSUMER.INFO.*."+consumerName),
		}
	}
}

// takeSubject is where workers ask for attempts. It is the one request with several answers.
const takeSubject = "$JS.API.CONSUMER.MSG.NEXT.*." + consumerName

func answers(subject string) string {
	if subject == takeSubject {
		return "Stream" // as nsc writes it; the configuration takes any case
	}
	return "Singleton"
}

// inboxPrefix begins the subjects of the answers to a member, which no other one can read.
func inboxPrefix(key string) string { return "_INBOX." + key }

// exported returns the rights of all workers and observers.
func exported() rights {
	all := rightsOf(RoleWorker, "*")
	all.send = append(all.send, rightsOf(RoleObserver, "*").send...)
	slices.Sort(all.send)
	all.send = slices.Compact(all.send)
	return all
}

// dialect is how rights are written for a server, as formats of lines. All of them get the account
// first; a subject and its kind of answers follow, or the name, the key, and the rights.
type dialect struct {
	hub, service, stream       string
	users, coordinator, endHub string
	member, use, hear          string
	endMember, end             string
	list                       func(subjects []string) string
}

// conf is for a part of the configuration of a NATS server.
//
// Every key of a worker or observer has an account of its own, which imports what it has a right
// to. Who asks a server names the subject of the answer: it is a subject of that account, so that
// no answer can be written into a store, or be heard by another member.
var conf = dialect{
	hub:     "accounts {\n  %[1]s {\n    jetstream: enabled\n    exports = [\n",
	service: "      {service: %[2]q, response_type: %[3]s}\n",
	stream:  "      {stream: %[2]q}\n",
	users:   "    ]\n    users = [\n",
	coordinator: "      { # %[2]s\n        nkey: %[3]s\n        permissions {\n          publish: {allow: %[4]s}\n" +
		"          subscribe: {allow: %[5]s}\n        }\n      }\n",
	endHub:    "    ]\n  }\n",
	member:    "  %[3]s { # %[2]s\n    users = [{nkey: %[3]s}]\n    imports = [\n",
	use:       "      {service: {account: %[1]s, subject: %[2]q}}\n",
	hear:      "      {stream: {account: %[1]s, subject: %[2]q}}\n",
	endMember: "    ]\n  }\n",
	end:       "}\n",
	list:      func(subjects []string) string { return `["` + strings.Join(subjects, `", "`) + `"]` },
}

// saidBy adds to the URL of a key what nsc says of it: a server that is set up with nsc wants that.
func saidBy(account string) string {
	return "url=$(cat %[6]s); echo \"$url&jwt=$(nsc describe user --account " + account +
		" --name '%[2]s' --raw)\" >%[6]s\n"
}

// nsc is for the tool of that name.
var nsc = dialect{
	hub:     "nsc add account %[1]s\nnsc edit account %[1]s --js-disk-storage -1 --js-mem-storage -1\n",
	service: "nsc add export --account %[1]s --service --subject '%[2]s' --response-type %[3]s\n",
	stream:  "nsc add export --account %[1]s --subject '%[2]s'\n",
	coordinator: "nsc add user --account %[1]s --name '%[2]s' --public-key %[3]s --allow-pub '%[4]s' " +
		"--allow-sub '%[5]s'\n" + saidBy("%[1]s"),
	member: "nsc add account %[3]s\nnsc add user --account %[3]s --name '%[2]s' --public-key %[3]s\n" +
		saidBy("%[3]s"),
	use:  "nsc add import --account %[3]s --src-account %[1]s --service --remote-subject '%[2]s'\n",
	hear: "nsc add import --account %[3]s --src-account %[1]s --remote-subject '%[2]s'\n",
	list: func(subjects []string) string { return strings.Join(subjects, ",") },
}

// write returns the members of a hub directory and their rights.
func (k *hubKeys) write(dir string, d *dialect) (string, error) {
	var hub, accounts strings.Builder
	fmt.Fprintf(&hub, d.hub, hubAccount)
	all := exported()
	for _, subject := range all.send {
		fmt.Fprintf(&hub, d.service, hubAccount, subject, answers(subject))
	}
	for _, subject := range all.hear {
		fmt.Fprintf(&hub, d.stream, hubAccount, subject)
	}
	hub.WriteString(d.users)
	for _, m := range k.Members {
		key, err := m.Key()
		if err != nil {
			return "", fmt.Errorf("key %s: %w", m.Name, err)
		}
		file, err := syntax.Quote(urlFile(dir, m.Name), syntax.LangPOSIX)
		if err != nil {
			return "", err
		}
		own, to, format := rightsOf(m.Role, key), &accounts, d.member
		if m.Role == RoleCoordinator {
			to, format = &hub, d.coordinator
		}
		fmt.Fprintf(to, format, hubAccount, m.Name, key, d.list(own.send), d.list(own.hear), file)
		if m.Role == RoleCoordinator {
			continue
		}
		for _, subject := range own.send {
			fmt.Fprintf(to, d.use, hubAccount, subject, key)
		}
		for _, subject := range own.hear {
			fmt.Fprintf(to, d.hear, hubAccount, subject, key)
		}
		to.WriteString(d.endMember)
	}
	return hub.String() + d.endHub + accounts.String() + d.end, nil
}

// Permissions returns the members of a hub directory as the configuration of an external server
// (conf), or as commands of its tool (nsc), and writes their URLs.
func Permissions(dir, address, form string) (string, error) {
	keys, err := hubSecrets(dir)
	if err != nil {
		return "", err
	}
	host, _, err := splitAddress(address)
	if err != nil {
		return "", fmt.Errorf("address %q: %w", address, err)
	}
	if err := keys.writeURLs(dir, joinURL{Address: address, External: true, TLS: !isLoopback(host)}); err != nil {
		return "", err
	}
	if form == "nsc" {
		return keys.write(dir, &nsc)
	}
	return keys.write(dir, &conf)
}
