# What a person does with kubectl. CLIENT is the binary, GROUP the API group of the custom resource Website.
k() { echo "+ kubectl $*" >&2; timeout 60 "$CLIENT" --cache-dir="$HOME/cache" "$@"; }
fails() { if k "$@"; then echo "kubectl $*: no error"; exit 1; fi; }

cat > web.yaml <<END
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "web:1", ports: [{containerPort: 80}]}]}
---
apiVersion: v1
kind: Service
metadata: {name: web, labels: {app: web}}
spec: {selector: {app: web}, clusterIP: None, ports: [{port: 80}]}
---
apiVersion: $GROUP/v1
kind: Website
metadata: {name: site, labels: {app: web}}
spec: {domain: a.example}
END
k create -f web.yaml --dry-run=server
k apply -f web.yaml
k apply -f web.yaml
sed -i 's/web:1/web:2/; s/a.example/b.example/' web.yaml
k diff -f web.yaml || test $? = 1
k apply -f web.yaml
k apply --server-side -f web.yaml --field-manager=author --force-conflicts
sed -i 's/b.example/c.example/' web.yaml
fails apply --server-side -f web.yaml --field-manager=other
k apply --server-side -f web.yaml --field-manager=other --force-conflicts --dry-run=server
k get deployments,services,websites."$GROUP" -o wide
k get deployment web -o yaml
k get deployments -l app=web --chunk-size=1 -o json
k get websites."$GROUP" --sort-by=.metadata.name -o jsonpath='{.items[*].metadata.name}'
k get pods --field-selector=status.phase=Running
fails get deployment none
k get --raw "/api/v1/namespaces/$NAMESPACE/services/web"
k describe deployment web
k describe website."$GROUP" site
k create configmap cm --from-literal=k=v
fails create configmap cm --from-literal=k=v
k create secret generic secret --from-literal=k=v
k create serviceaccount sa
k create token sa --duration=1h > /dev/null
k create role reader --verb=get,list --resource=pods
k create rolebinding reader --role=reader --serviceaccount="$NAMESPACE:sa"
k create quota quota --hard=pods=10
k create job job --image=job:1
k create cronjob cron --image=job:1 --schedule='0 * * * *'
k create poddisruptionbudget pdb --selector=app=web --min-available=1
k create ingress ing --rule=a.example/=web:80
k run pod --image=pod:1 --labels=app=x
k label configmap cm app=x
k label configmap cm app=y --overwrite
k label configmap cm app-
k annotate configmap cm note=1
k patch configmap cm -p '{"data":{"p":"1"}}'
k patch configmap cm --type=merge -p '{"data":{"p":null}}'
k patch configmap cm --type=json -p '[{"op":"add","path":"/data/j","value":"1"}]'
k patch website."$GROUP" site --type=merge --subresource=status -p '{"status":{"url":"u"}}'
k get website."$GROUP" site --subresource=status
k scale deployment web --replicas=3
k scale deployment web --current-replicas=3 --replicas=1
k scale website."$GROUP" site --replicas=2
k autoscale deployment web --min=1 --max=3 --cpu=80% || k autoscale deployment web --min=1 --max=3 --cpu-percent=80
k expose deployment web --name=exposed --port=80 --cluster-ip=None
k set image deployment/web web=web:3
k set env deployment/web A=1
k set resources deployment/web --limits=cpu=1
k rollout pause deployment/web
k rollout resume deployment/web
k rollout restart deployment/web
k rollout history deployment/web
k get configmap cm -o yaml > cm.yaml
sed -i 's/^data:/data:\n  r: "1"/' cm.yaml
k replace -f cm.yaml
fails replace -f cm.yaml
k get configmap cm -o yaml | sed '/resourceVersion/d; /uid/d; s/name: cm$/name: cm/' | k replace --force -f -
EDITOR='sed -i s/name:\ web/name:\ web/;true' k edit deployment web
KUBE_EDITOR='sed -i s/b.example/edited.example/' k edit website."$GROUP" site
k auth can-i create deployments
k auth whoami
k wait --for=jsonpath='{.status.url}'=u website."$GROUP"/site --timeout=10s
k explain deployment.spec.replicas > /dev/null
k api-resources --namespaced > /dev/null
k delete pod pod --grace-period=0 --force
k delete configmap cm --cascade=orphan --wait=false
k delete deployment web --cascade=foreground --wait=false
k delete website."$GROUP" -l app=web
k delete -f web.yaml --ignore-not-found --wait=false
k delete jobs,cronjobs --all --wait=false
k delete configmap cm --wait=false
k delete serviceaccount sa --now
