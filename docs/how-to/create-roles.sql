-- Create the roles of the owner and of the service, and transfer the current database to the owner. Migrations and
-- archiving use the owner's role. "manage.py grant_service_role" grants the privileges of the service's role.
-- Run this script as a superuser in each new database. If the roles do not exist yet, set OWNER_PASSWORD and
-- SERVICE_PASSWORD in the environment, or OWNER_PASSWORD_FILE and SERVICE_PASSWORD_FILE. compose.yaml runs this
-- script automatically.
\set ON_ERROR_STOP on
\if :{?owner}
\else
  \set owner infra_owner
\endif
\if :{?service}
\else
  \set service infra
\endif
\set owner_password `cat "${OWNER_PASSWORD_FILE:-/dev/null}"; printf %s "$OWNER_PASSWORD"`
\set service_password `cat "${SERVICE_PASSWORD_FILE:-/dev/null}"; printf %s "$SERVICE_PASSWORD"`
SELECT format('CREATE ROLE %I LOGIN PASSWORD %L', name, password)
FROM (VALUES (:'owner', :'owner_password'), (:'service', :'service_password')) AS wanted (name, password)
WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = name) \gexec
SELECT current_database() AS database \gset
ALTER DATABASE :"database" OWNER TO :"owner";
REVOKE ALL ON DATABASE :"database" FROM PUBLIC;
GRANT CONNECT ON DATABASE :"database" TO :"service";
REVOKE ALL ON SCHEMA public FROM PUBLIC;
GRANT USAGE, CREATE ON SCHEMA public TO :"owner";
