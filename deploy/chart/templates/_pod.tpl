{{- define "infra-service.name" -}}
{{- $name := default .Release.Name .Values.fullnameOverride }}
{{- /* Kubernetes would refuse the Service after the migrations. */}}
{{- if not (regexMatch "^[a-z][-a-z0-9]*$" $name) }}
{{- fail (printf "the release name %s is not a DNS label that begins with a letter: set fullnameOverride" $name) }}
{{- end }}
{{- $name }}
{{- end }}

{{- /* The labels of a component: a list of the root context and the component's name. */}}
{{- define "infra-service.labels" -}}
app.kubernetes.io/name: infra-service
app.kubernetes.io/instance: {{ include "infra-service.name" (index . 0) | quote }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{- define "infra-service.settings" -}}
{{- $settings := dict "VAR_DIR" "/run/infra-service" "BIND" "0.0.0.0:8000" }}
{{- $_ := set $settings "ALLOWED_HOSTS" .Values.host }}
{{- $_ := set $settings "CSRF_TRUSTED_ORIGINS" (printf "https://%s" .Values.host) }}
{{- $_ := set $settings "BEHIND_TLS_PROXY" "true" }}
{{- $_ := set $settings "SECURE_SSL_REDIRECT" "true" }}
{{- $_ := set $settings "SECURE_HSTS_SECONDS" "31536000" }}
{{- with .Values.monitoring.networks }}
{{- $_ := set $settings "METRICS_NETWORKS" (printf "127.0.0.0/8,::1/128,%s" .) }}
{{- end }}
{{- range $name := list "SECRET_KEY" "SECRET_KEY_FALLBACKS" "STATE_ENCRYPTION_KEYS" "DATABASE_URL" "DATABASE_REPLICA_URL" "CACHE_URL" "STATE_STORAGE_URL" "OIDC_CLIENT_SECRET" "VAULT_TOKEN" }}
{{- if hasKey $.Values.settings $name }}
{{- fail (printf "settings.%s is secret: add it to the Secret %s" $name $.Values.secrets.service) }}
{{- end }}
{{- end }}
{{- range $name, $value := merge (dict) .Values.settings $settings }}
{{- /* Kubernetes replaces $$ by $, and $(NAME) by another setting. */}}
- name: {{ $name }}
  value: {{ $value | replace "$" "$$" | quote }}
{{- end }}
{{- end }}

{{- /*
The pod template of a component. Arguments: root, component and resources; for commands, also command;
for the table owner's role, also isOwner.
*/}}
{{- define "infra-service.pod" -}}
{{- $values := .root.Values -}}
metadata:
  labels:
    {{- include "infra-service.labels" (list .root .component) | nindent 4 }}
    {{- with $values.labels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with $values.annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  serviceAccountName: {{ $values.serviceAccountName | quote }}
  automountServiceAccountToken: false
  enableServiceLinks: false
  # The delay of preStop (5 s), 30 s for the requests in progress, and a margin.
  terminationGracePeriodSeconds: 45
  {{- with $values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- if eq .component "migrate" }}
  restartPolicy: Never
  {{- else }}
  topologySpreadConstraints:
    {{- range $key := list "topology.kubernetes.io/zone" "kubernetes.io/hostname" }}
    - maxSkew: 1
      topologyKey: {{ $key }}
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "infra-service.labels" (list $.root $.component) | nindent 10 }}
    {{- end }}
  {{- end }}
  securityContext:
    runAsNonRoot: true
    {{- with $values.podSecurityContext }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
    seccompProfile:
      type: RuntimeDefault
  containers:
    - name: {{ .component }}
      image: {{ $values.image | quote }}
      {{- with .command }}
      command:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      envFrom:
        - secretRef:
            name: {{ $values.secrets.service | quote }}
      env:
        # If the key is missing, the pod does not start. Without DATABASE_URL, the service would use SQLite.
        - name: DATABASE_URL
          valueFrom:
            secretKeyRef:
              name: {{ ternary $values.secrets.owner $values.secrets.service (default false .isOwner) | quote }}
              key: DATABASE_URL
        {{- include "infra-service.settings" .root | trim | nindent 8 }}
        {{- if and (eq .component "archive") $values.archive.claim }}
        - name: AUDIT_ARCHIVE_DIR
          value: /var/lib/infra-archive
        {{- end }}
      {{- if eq .component "service" }}
      ports:
        - name: http
          containerPort: 8000
          protocol: TCP
      startupProbe:
        httpGet: {path: /healthz, port: http}
        periodSeconds: 2
        failureThreshold: 60
      livenessProbe:
        httpGet: {path: /healthz, port: http}
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 6
      readinessProbe:
        httpGet: {path: /readyz, port: http}
        periodSeconds: 5
        timeoutSeconds: 5
        failureThreshold: 2
      # Kubernetes may remove a pod from the endpoints only after it has begun to stop the pod.
      lifecycle:
        preStop:
          exec:
            command: [sleep, "5"]
      {{- else if ne .component "migrate" }}
      # The job renews the file every few seconds, even if the database is unreachable.
      livenessProbe:
        exec:
          command: [sh, -c, 'test -n "$(find /run/infra-service/heartbeat -mmin -10)"']
        initialDelaySeconds: 60
        periodSeconds: 60
        timeoutSeconds: 10
      {{- end }}
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities:
          drop: [ALL]
      resources:
        {{- toYaml .resources | nindent 8 }}
      volumeMounts:
        - name: run
          mountPath: /run/infra-service
        - name: tmp
          mountPath: /tmp
        {{- if $values.caConfigMap }}
        - name: authorities
          mountPath: /etc/infra-service
          readOnly: true
        {{- end }}
        {{- if and (eq .component "archive") $values.archive.claim }}
        - name: archives
          mountPath: /var/lib/infra-archive
        {{- end }}
  volumes:
    - name: run
      emptyDir: {medium: Memory, sizeLimit: 32Mi}
    - name: tmp
      emptyDir: {medium: Memory, sizeLimit: 32Mi}
    {{- if $values.caConfigMap }}
    - name: authorities
      configMap:
        name: {{ $values.caConfigMap | quote }}
    {{- end }}
    {{- if and (eq .component "archive") $values.archive.claim }}
    - name: archives
      persistentVolumeClaim:
        claimName: {{ $values.archive.claim | quote }}
    {{- end }}
{{- end }}
