package localapi

// known are all differences that are meant. Each has its line in docs/divergence.md, under "Embedded API".
var known = []knownDifference{
	{
		path: `body\..*spec\.serviceAccount(Name)?|body\.(.*\.)?f:spec\.f:serviceAccount(Name)?`,
		ours: `"default"`, reason: "the real server runs without the admission plugin that names the service account",
	},
	{
		script: "pods", request: "MERGE pods/a|STRATEGIC pods/a", path: `body\.(message|details\.causes\.0\.message)`,
		ours: `.*pod updates may not change fields other than.*`, reason: "the message shows Go structs, the service account's name among them",
	},
	{
		script: "pods", request: "POST pods/volumes/eviction", path: `code|body(\..*)?|headers.*`, reason: "evictions of policy/v1 only",
	},
	{
		request: "(POST|GET) persistentvolumeclaims.*", path: `body.*metadata\.finalizers`, reason: "the pvc-protection finalizer: nobody is there to take it away",
	},
}
